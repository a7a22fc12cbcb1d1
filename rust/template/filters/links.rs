//! `urlize`: addresses in a text as links of a web page.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::OnceLock;

use regex::Regex;

use super::super::access::byte_of;
use super::super::arguments::{Args, flag, integer};
use super::super::characters::{is_space, is_word};
use super::super::dump::soft;
use super::super::escape::escaped;
use super::super::failure::{raise, type_error};
use super::super::render::Renderer;
use super::super::text::{Text, Writer};
use super::super::value::Value;
use super::Call;
use crate::Result;

/// An address of the web: a host that is named with a scheme or `www.`, or by a common domain, or a number. In Python `i`
/// without regard to case is also one of Turkish.
const WEB: &str = r"(?xi) ^ (
      ( https? :// | www\. ) ( [\p{L}\p{N}_%-]+ \. )* ( [a-zİı]{2,63} | xn-- [\p{L}\p{N}_%]{2,59} )
    | ( [\p{L}\p{N}_%-]{2,63} \. )+ ( com | net | [iİı]nt | edu | gov | org | [iİı]nfo | m[iİı]l )
    | https? :// ( \p{Nd}{1,3} ( \. \p{Nd}{1,3} ){3} | \[ ( [\p{Nd}a-f]{0,4} : ){2} ( [\p{Nd}a-f]{0,4} :? ){1,6} \] )
    ) ( : \p{Nd}{1,5} )? ( [/?\#] .* )? $";
const MAIL: &str = r"^.+@[\p{L}\p{N}_][\p{L}\p{N}_.-]*\.[\p{L}\p{N}_]+$";
const PAIRS: [(&str, &str); 3] = [("(", ")"), ("<", ">"), ("&lt;", "&gt;")];

pub(super) fn find(name: &str) -> Option<Call> {
    (name == "urlize").then_some(urlize as Call)
}

fn urlize<'a>(renderer: &mut Renderer<'a>, value: Value<'a>, args: Args<'a>) -> Result<Value<'a>> {
    let names = ["trim_url_limit", "nofollow", "target", "rel", "extra_schemes"];
    let [limit, nofollow, target, rel, schemes] = args.bind("urlize", names, 0)?;
    let links = Links {
        limit: limit.filter(|limit| !matches!(limit, Value::None)),
        attributes: attributes(rel, flag(nofollow.as_ref(), false), target)?,
        schemes: schemes_of(renderer, schemes)?,
    };
    let text = escaped(&soft(&value)?);
    let mut writer = Writer::with_capacity(text.len());
    let mut start = 0;
    while start < text.len() {
        let rest = &text.as_str()[start..];
        let space = rest.starts_with(is_space);
        let end = start + rest.find(|char| is_space(char) != space).unwrap_or(rest.len());
        if space {
            writer.push_range(&text, start..end);
        } else {
            links.write(&text, start..end, &mut writer)?;
        }
        renderer.check_size(writer.len())?;
        start = end;
    }
    Ok(Value::Text(writer.finish().with_safety(renderer.autoescape())))
}

/// The attributes of each link: who it does not vouch for, and where it opens.
fn attributes(rel: Option<Value<'_>>, nofollow: bool, target: Option<Value<'_>>) -> Result<String> {
    let rel = match rel {
        Some(Value::Text(rel)) => rel.as_str().to_owned(),
        Some(rel) if rel.is_true() => {
            return Err(raise("AttributeError", format!("'{}' object has no attribute 'split'", rel.type_name())));
        }
        _ => String::new(),
    };
    let mut parts: BTreeSet<&str> = rel.split(is_space).filter(|part| !part.is_empty()).collect();
    parts.insert("noopener");
    if nofollow {
        parts.insert("nofollow");
    }
    let parts: Vec<&str> = parts.into_iter().collect();
    let mut attributes = format!(" rel=\"{}\"", escaped(&Text::own(parts.join(" "))).as_str());
    if let Some(target) = target.filter(Value::is_true) {
        let target = escaped(&soft(&target)?);
        attributes = format!("{attributes} target=\"{}\"", target.as_str());
    }
    Ok(attributes)
}

fn schemes_of<'a>(renderer: &mut Renderer<'a>, schemes: Option<Value<'a>>) -> Result<Vec<String>> {
    let Some(schemes) = schemes.filter(|schemes| !matches!(schemes, Value::None)) else { return Ok(Vec::new()) };
    let mut checked = Vec::new();
    for scheme in renderer.collect(&schemes)? {
        let Value::Text(scheme) = scheme else { return Err(type_error("expected string or bytes-like object")) };
        if !is_scheme(scheme.as_str()) {
            let message = format!("'{}' is not a valid URI scheme prefix.", scheme.as_str());
            return Err(raise("FilterArgumentError", message));
        }
        checked.push(scheme.as_str().to_owned());
    }
    Ok(checked)
}

fn is_scheme(scheme: &str) -> bool {
    let bare = scheme.strip_suffix("//").or_else(|| scheme.strip_suffix('/')).unwrap_or(scheme);
    bare.strip_suffix(':').is_some_and(|name| {
        name.chars().count() >= 2 && name.chars().all(|char| is_word(char) || matches!(char, '.' | '+' | '-'))
    })
}

struct Links<'a> {
    limit: Option<Value<'a>>,
    attributes: String,
    schemes: Vec<String>,
}

impl Links<'_> {
    /// Writes a word, as a link if it is an address; brackets and points around it stay outside.
    fn write(&self, text: &Text<'_>, word: Range<usize>, out: &mut Writer) -> Result<()> {
        let middle = address(text.as_str(), word.clone());
        out.push_range(text, word.start..middle.start);
        let shown = &text.as_str()[middle.clone()];
        let mail = shown.strip_prefix("mailto:").filter(|mail| is_mail(mail));
        if is_web(shown) {
            let scheme = if shown.starts_with("https://") || shown.starts_with("http://") { "" } else { "https://" };
            let kept = self.trimmed(shown)?;
            link(text, &middle, scheme, &self.attributes, middle.start..middle.start + kept, out);
        } else if let Some(mail) = mail {
            link(text, &middle, "", "", middle.end - mail.len()..middle.end, out);
        } else if !shown.starts_with("www.") && !shown.starts_with('@') && !shown.contains(':') && is_mail(shown) {
            link(text, &middle, "mailto:", "", middle.clone(), out);
        } else if self.schemes.iter().any(|scheme| shown != scheme && shown.starts_with(scheme.as_str())) {
            link(text, &middle, "", &self.attributes, middle.clone(), out);
        } else {
            out.push_range(text, middle.clone());
        }
        out.push_range(text, middle.end..word.end);
        Ok(())
    }

    /// How many bytes of an address are shown.
    fn trimmed(&self, address: &str) -> Result<usize> {
        let count = address.chars().count() as i64;
        let limit = match &self.limit {
            None => return Ok(address.len()),
            #[expect(clippy::cast_precision_loss, reason = "no address is so long")]
            Some(Value::Float(limit)) if count as f64 <= *limit => return Ok(address.len()),
            Some(limit) => integer(limit)?,
        };
        let kept = if limit < 0 { (count + limit).max(0) } else { limit.min(count) };
        Ok(byte_of(address, kept as usize))
    }
}

fn link(
    text: &Text<'_>,
    address: &Range<usize>,
    scheme: &str,
    attributes: &str,
    shown: Range<usize>,
    out: &mut Writer,
) {
    let close = if shown.end < address.end { "...</a>" } else { "</a>" };
    out.push("<a href=\"", None);
    out.push(scheme, None);
    out.push_range(text, address.clone());
    out.push("\"", None);
    out.push(attributes, None);
    out.push(">", None);
    out.push_range(text, shown);
    out.push(close, None);
}

/// The part of a word that may be an address. A closing bracket behind it belongs to it where it opens one.
fn address(text: &str, word: Range<usize>) -> Range<usize> {
    let mut start = word.start;
    while let Some(open) = ["(", "<", "&lt;"].iter().find(|open| text[start..word.end].starts_with(**open)) {
        start += open.len();
    }
    let mut end = word.end;
    while let Some(close) = [")", ">", ".", ",", "&gt;"].iter().find(|close| text[start..end].ends_with(**close)) {
        end -= close.len();
    }
    for (open, close) in PAIRS {
        let opened = text[start..end].matches(open).count();
        if opened <= text[start..end].matches(close).count() {
            continue;
        }
        for _ in 0..opened.min(text[end..word.end].matches(close).count()) {
            let Some(at) = text[end..word.end].find(close) else { break };
            end += at + close.len();
        }
    }
    start..end
}

fn is_web(text: &str) -> bool {
    static PATTERN: OnceLock<Option<Regex>> = OnceLock::new();
    matches(&PATTERN, WEB, text)
}

fn is_mail(text: &str) -> bool {
    static PATTERN: OnceLock<Option<Regex>> = OnceLock::new();
    text.contains('@') && matches(&PATTERN, MAIL, text)
}

fn matches(pattern: &'static OnceLock<Option<Regex>>, source: &str, text: &str) -> bool {
    pattern.get_or_init(|| Regex::new(source).ok()).as_ref().is_some_and(|pattern| pattern.is_match(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_patterns_are_patterns() {
        assert!(
            is_web("https://a.example/b") && is_web("www.b.org") && is_web("http://[::1]:80") && is_web("aa.bb.com")
        );
        assert!(is_mail("a@b.example") && !is_web("a.example") && !is_mail("a@b"));
    }

    #[test]
    fn brackets_around_an_address_stay_outside() {
        let inside = |word: &str| word[address(word, 0..word.len())].to_owned();
        assert_eq!(inside("(www.b.org),"), "www.b.org");
        assert_eq!(inside("www.b.org/(a)."), "www.b.org/(a)");
        assert_eq!(inside("&lt;a.com&gt;"), "a.com");
    }
}
