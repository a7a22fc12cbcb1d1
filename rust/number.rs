//! Numbers as Python writes them.

use std::fmt::Write;

/// Appends the shortest text that reads back as `number`: Python's `repr` of a float.
///
/// The exponent form begins below 1e-4 and at 1e16, and has at least two digits of exponent.
pub(crate) fn push_float(number: f64, out: &mut String) {
    if !number.is_finite() {
        out.push_str(if number.is_nan() {
            "nan"
        } else if number > 0.0 {
            "inf"
        } else {
            "-inf"
        });
        return;
    }
    let magnitude = number.abs();
    if magnitude != 0.0 && !(1e-4..1e16).contains(&magnitude) {
        push_exponent(number, out);
        return;
    }
    let start = out.len();
    let _ = write!(out, "{number}");
    if !out[start..].contains('.') {
        out.push_str(".0");
    }
}

fn push_exponent(number: f64, out: &mut String) {
    let shown = format!("{number:e}");
    let (digits, exponent) = shown.split_once('e').unwrap_or((&shown, "0"));
    let (sign, exponent) = exponent.strip_prefix('-').map_or(('+', exponent), |rest| ('-', rest));
    let _ = write!(out, "{digits}e{sign}{exponent:0>2}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(number: f64) -> String {
        let mut out = String::new();
        push_float(number, &mut out);
        out
    }

    #[test]
    fn floats_are_written_as_python_writes_them() {
        let cases = [
            (1.0, "1.0"),
            (-0.0, "-0.0"),
            (1e22, "1e+22"),
            (1e16, "1e+16"),
            (1e15, "1000000000000000.0"),
            (9_999_999_999_999_998.0, "9999999999999998.0"),
            (1e-4, "0.0001"),
            (1e-5, "1e-05"),
            (1.5e-7, "1.5e-07"),
            (0.1 + 0.2, "0.30000000000000004"),
            (5e-324, "5e-324"),
            (f64::NAN, "nan"),
            (f64::NEG_INFINITY, "-inf"),
        ];
        for (number, expected) in cases {
            assert_eq!(shown(number), expected);
        }
    }
}
