//! The moment that `strftime_now` reads, and Python's `strftime` of it.

use std::fmt::Write;

/// A moment of local time without a zone, as Python's `datetime.now()` gives it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Clock {
    /// 1 to 9999.
    pub year: i32,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    /// 0 to 23.
    pub hour: u32,
    /// 0 to 59.
    pub minute: u32,
    /// 0 to 59.
    pub second: u32,
    /// 0 to 999,999.
    pub microsecond: u32,
}

const WEEKDAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

impl Clock {
    /// The machine's local time.
    pub fn now() -> Self {
        use chrono::{Datelike, Timelike};
        let now = chrono::Local::now();
        Self {
            year: now.year(),
            month: now.month(),
            day: now.day(),
            hour: now.hour(),
            minute: now.minute(),
            second: now.second(),
            microsecond: now.nanosecond() / 1000,
        }
    }

    /// Days since 1970-01-01 of the proleptic Gregorian calendar.
    fn days(&self) -> i64 {
        let (year, month, day) = (i64::from(self.year), i64::from(self.month), i64::from(self.day));
        let shifted = if month > 2 { year } else { year - 1 };
        let era = shifted.div_euclid(400);
        let of_era = shifted.rem_euclid(400);
        let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
        era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
    }

    /// 0 is Sunday.
    fn weekday(&self) -> i64 {
        (self.days() + 4).rem_euclid(7)
    }

    /// 1 to 366.
    fn day_of_year(&self) -> i64 {
        self.days() - Self { month: 1, day: 1, ..*self }.days() + 1
    }

    /// The ISO year and week.
    fn iso_week(&self) -> (i32, i64) {
        let weekday = (self.weekday() + 6) % 7;
        let thursday = self.days() - weekday + 3;
        let first = |year: i32| Self { year, month: 1, day: 1, ..*self }.days();
        let year = (self.year - 1..=self.year + 1).rev().find(|year| first(*year) <= thursday).unwrap_or(self.year);
        (year, (thursday - first(year)) / 7 + 1)
    }

    /// Seconds since 1970-01-01, the moment taken as local time of the machine.
    fn timestamp(&self) -> i64 {
        use chrono::TimeZone;
        let local =
            chrono::Local.with_ymd_and_hms(self.year, self.month, self.day, self.hour, self.minute, self.second);
        let plain = self.days() * 86400 + i64::from(self.hour * 3600 + self.minute * 60 + self.second);
        local.earliest().map_or(plain, |moment| moment.timestamp())
    }

    /// What Python's `datetime.strftime(format)` gives in the C locale on Linux, flags (`%-d`) included.
    pub fn strftime(&self, format: &str) -> String {
        let mut out = String::with_capacity(format.len() + 16);
        let mut rest = format;
        while let Some(at) = rest.find('%') {
            out.push_str(&rest[..at]);
            rest = self.directive(&rest[at..], &mut out);
        }
        out.push_str(rest);
        out
    }

    /// Writes the directive at the start of `text` and returns what follows it.
    fn directive<'t>(&self, text: &'t str, out: &mut String) -> &'t str {
        let body = &text[1..];
        let flags = body.len() - body.trim_start_matches(['-', '_', '0', '^', '#']).len();
        let width = body[flags..].bytes().take_while(u8::is_ascii_digit).count();
        let Some(code) = body[flags + width..].chars().next() else {
            out.push_str(text);
            return "";
        };
        let rest = &body[flags + width + code.len_utf8()..];
        let before = out.len();
        let padding = Padding::new(&body[..flags], body[flags..flags + width].parse().unwrap_or(0));
        if !self.write(code, &padding, out) {
            out.truncate(before);
            out.push_str(&text[..text.len() - rest.len()]);
        }
        rest
    }

    /// Writes one directive; false if it is unknown.
    fn write(&self, code: char, pad: &Padding, out: &mut String) -> bool {
        let hour = if self.hour.is_multiple_of(12) { 12 } else { self.hour % 12 };
        let half = if self.hour < 12 { "AM" } else { "PM" };
        let weekday = self.weekday();
        let monday = (weekday + 6) % 7;
        let weekday_name = WEEKDAYS[weekday as usize];
        let month_name = MONTHS[(self.month as usize + 11) % 12];
        let year = i64::from(self.year);
        match code {
            'a' => pad.text(&weekday_name[..3], out),
            'A' => pad.text(weekday_name, out),
            'b' | 'h' => pad.text(&month_name[..3], out),
            'B' => pad.text(month_name, out),
            'c' => pad.text(&self.strftime("%a %b %e %H:%M:%S %Y"), out),
            'C' => pad.number(year.div_euclid(100), 2, '0', out),
            'd' => pad.number(i64::from(self.day), 2, '0', out),
            'D' | 'x' => pad.text(&self.strftime("%m/%d/%y"), out),
            'e' => pad.number(i64::from(self.day), 2, ' ', out),
            'f' => drop(write!(out, "{:06}", self.microsecond)),
            'F' => pad.text(&self.strftime("%Y-%m-%d"), out),
            'g' => pad.number(i64::from(self.iso_week().0).rem_euclid(100), 2, '0', out),
            'G' => pad.number(i64::from(self.iso_week().0), 1, '0', out),
            'H' => pad.number(i64::from(self.hour), 2, '0', out),
            'I' => pad.number(i64::from(hour), 2, '0', out),
            'j' => pad.number(self.day_of_year(), 3, '0', out),
            'k' => pad.number(i64::from(self.hour), 2, ' ', out),
            'l' => pad.number(i64::from(hour), 2, ' ', out),
            'm' => pad.number(i64::from(self.month), 2, '0', out),
            'M' => pad.number(i64::from(self.minute), 2, '0', out),
            'n' => out.push('\n'),
            'p' if pad.swap => out.push_str(&half.to_lowercase()),
            'p' => pad.text(half, out),
            'P' => pad.text(&half.to_lowercase(), out),
            'r' => pad.text(&self.strftime("%I:%M:%S %p"), out),
            'R' => pad.text(&self.strftime("%H:%M"), out),
            's' => pad.number(self.timestamp(), 1, '0', out),
            'S' => pad.number(i64::from(self.second), 2, '0', out),
            't' => out.push('\t'),
            'T' | 'X' => pad.text(&self.strftime("%H:%M:%S"), out),
            'u' => pad.number(monday + 1, 1, '0', out),
            'U' => pad.number((self.day_of_year() + 6 - weekday) / 7, 2, '0', out),
            'V' => pad.number(self.iso_week().1, 2, '0', out),
            'w' => pad.number(weekday, 1, '0', out),
            'W' => pad.number((self.day_of_year() + 6 - monday) / 7, 2, '0', out),
            'y' => pad.number(year.rem_euclid(100), 2, '0', out),
            'Y' => pad.number(year, 1, '0', out),
            'z' | 'Z' => {}
            '%' => out.push('%'),
            _ => return false,
        }
        true
    }
}

/// The flags and width between `%` and the letter of a directive.
struct Padding {
    with: Option<char>,
    none: bool,
    upper: bool,
    swap: bool,
    width: usize,
}

impl Padding {
    fn new(flags: &str, width: usize) -> Self {
        let mut padding = Self { with: None, none: false, upper: false, swap: false, width: width.min(1024) };
        for flag in flags.chars() {
            match flag {
                '-' => padding.none = true,
                '_' => (padding.with, padding.none) = (Some(' '), false),
                '0' => (padding.with, padding.none) = (Some('0'), false),
                '^' => padding.upper = true,
                _ => padding.swap = true,
            }
        }
        padding
    }

    fn number(&self, number: i64, width: usize, fill: char, out: &mut String) {
        let width = if self.none { self.width } else { self.width.max(width) };
        let shown = number.to_string();
        let fill = self.with.unwrap_or(fill);
        out.extend(std::iter::repeat_n(fill, width.saturating_sub(shown.len())));
        out.push_str(&shown);
    }

    fn text(&self, text: &str, out: &mut String) {
        let fill = if self.with == Some('0') { '0' } else { ' ' };
        out.extend(std::iter::repeat_n(fill, self.width.saturating_sub(text.len())));
        if self.upper || self.swap {
            out.push_str(&text.to_uppercase());
        } else {
            out.push_str(text);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOMENT: Clock = Clock { year: 2026, month: 11, day: 30, hour: 9, minute: 5, second: 7, microsecond: 0 };

    #[test]
    fn directives_are_pythons() {
        let shown = MOMENT.strftime("%Y-%m-%d %H:%M:%S %A %B %j %-d %e %p %I %y %Z|%z");
        assert_eq!(shown, "2026-11-30 09:05:07 Monday November 334 30 30 AM 09 26 |");
        assert_eq!(
            MOMENT.strftime("%a %b %U %W %V %G %u %w %f %-H %_H %^a 100%"),
            "Mon Nov 48 48 49 2026 1 1 000000 9  9 MON 100%"
        );
    }

    #[test]
    fn iso_weeks_cross_the_year() {
        let first = Clock { year: 2027, month: 1, day: 1, ..MOMENT };
        assert_eq!(first.strftime("%G-%V %j %U"), "2026-53 001 00");
    }
}
