//! `vprintf` of a kernel: C's format language on the arguments that the compiler packed.

use std::io::Write;

use crate::code::Place;
use crate::fault::FaultKind;
use crate::space::Spaces;

/// Flags, width and precision of one conversion.
#[derive(Debug, Default)]
struct Options {
    left: bool,
    zero: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    width: usize,
    precision: Option<usize>,
}

/// Prints to the program's standard output, where a device's `printf` ends up too.
pub(crate) fn print(
    spaces: &mut Spaces<'_>,
    local: &[u8],
    format: u64,
    arguments: u64,
) -> Result<(), FaultKind> {
    let out = render(spaces, local, format, arguments)?;
    // A closed standard output is the program's business, not a fault of the kernel.
    let mut stdout = std::io::stdout().lock();
    let _ = stdout.write_all(&out).and_then(|()| stdout.flush());
    Ok(())
}

/// The bytes that the format at `format` makes of the arguments at `arguments`.
pub(crate) fn render(
    spaces: &mut Spaces<'_>,
    local: &[u8],
    format: u64,
    arguments: u64,
) -> Result<Vec<u8>, FaultKind> {
    let Some(format) = spaces.text(local, format) else {
        return Err(FaultKind::IllegalAddress { address: format, size: 1 });
    };
    let mut next = arguments;
    let mut argument = |spaces: &mut Spaces<'_>, size: u64| {
        next = next.next_multiple_of(size);
        let mut buf = [0u8; 8];
        spaces.load(local, (Place::Generic, false), next, &mut buf[..size as usize])?;
        next += size;
        Ok(u64::from_le_bytes(buf))
    };
    let mut out = Vec::new();
    let mut rest = &format[..];
    while let Some(at) = rest.iter().position(|&byte| byte == b'%') {
        out.extend_from_slice(&rest[..at]);
        rest = &rest[at + 1..];
        let Some(end) = rest.iter().position(|byte| b"diouxXcsfFeEgGaAp%".contains(byte)) else {
            break;
        };
        let (spec, conversion) = (&rest[..end], rest[end]);
        rest = &rest[end + 1..];
        if conversion == b'%' {
            out.push(b'%');
            continue;
        }
        let options = Options::parse(spec, || argument(spaces, 4).map(|v| v as i32))?;
        let wide = b"fFeEgGaAsp".contains(&conversion) || spec.contains(&b'l');
        let value = argument(spaces, if wide { 8 } else { 4 })?;
        let text = match conversion {
            b's' => {
                let mut text = spaces.text(local, value).unwrap_or_else(|| b"(null)".to_vec());
                text.truncate(options.precision.unwrap_or(text.len()));
                text
            }
            b'c' => vec![value as u8],
            _ => options.number(conversion, value, wide).into_bytes(),
        };
        options.pad(text, conversion, &mut out);
    }
    out.extend_from_slice(rest);
    Ok(out)
}

impl Options {
    fn parse(
        spec: &[u8],
        mut star: impl FnMut() -> Result<i32, FaultKind>,
    ) -> Result<Options, FaultKind> {
        // Wider or more precise than this is nonsense that would only cost memory.
        const MOST: usize = 4096;
        let mut options = Options::default();
        let mut bytes = spec.iter().copied().peekable();
        while let Some(flag) = bytes.next_if(|byte| b"-0+ #".contains(byte)) {
            match flag {
                b'-' => options.left = true,
                b'0' => options.zero = true,
                b'+' => options.plus = true,
                b' ' => options.space = true,
                _ => options.alternate = true,
            }
        }
        let mut number = |bytes: &mut std::iter::Peekable<_>| -> Result<i64, FaultKind> {
            if bytes.next_if_eq(&b'*').is_some() {
                return Ok(i64::from(star()?));
            }
            let mut value = 0usize;
            while let Some(digit) = bytes.next_if(u8::is_ascii_digit) {
                value = (value * 10 + usize::from(digit - b'0')).min(MOST);
            }
            Ok(value as i64)
        };
        let width = number(&mut bytes)?;
        options.left |= width < 0;
        options.width = (width.unsigned_abs() as usize).min(MOST);
        if bytes.next_if_eq(&b'.').is_some() {
            options.precision = usize::try_from(number(&mut bytes)?).ok().map(|p| p.min(MOST));
        }
        Ok(options)
    }

    fn number(&self, conversion: u8, value: u64, wide: bool) -> String {
        let signed = if wide { value as i64 } else { i64::from(value as i32) };
        let double = f64::from_bits(value);
        let precision = self.precision.unwrap_or(6);
        let (negative, digits) = match conversion {
            b'd' | b'i' => (signed < 0, signed.unsigned_abs().to_string()),
            b'o' => (false, format!("{value:o}")),
            b'u' => (false, value.to_string()),
            b'x' if self.alternate && value != 0 => (false, format!("{value:#x}")),
            b'x' => (false, format!("{value:x}")),
            b'X' if self.alternate && value != 0 => (false, format!("0X{value:X}")),
            b'X' => (false, format!("{value:X}")),
            b'p' => (false, format!("{value:#x}")),
            _ if !double.is_finite() => {
                let name = if double.is_nan() { "nan" } else { "inf" };
                (double.is_sign_negative(), name.to_owned())
            }
            b'f' | b'F' => (double.is_sign_negative(), format!("{:.precision$}", double.abs())),
            b'e' | b'E' => (double.is_sign_negative(), exponent(double.abs(), precision)),
            b'g' | b'G' => (double.is_sign_negative(), general(double.abs(), precision)),
            _ => (double.is_sign_negative(), format!("{:?}", double.abs())),
        };
        let digits = if b"EG".contains(&conversion) { digits.to_uppercase() } else { digits };
        let fill = match self.precision {
            Some(precision) if b"diouxX".contains(&conversion) => {
                "0".repeat(precision.saturating_sub(digits.len()))
            }
            _ => String::new(),
        };
        let is_signed = b"difFeEgGaA".contains(&conversion);
        let sign = match (negative, is_signed && self.plus, is_signed && self.space) {
            (true, ..) => "-",
            (_, true, _) => "+",
            (_, _, true) => " ",
            _ => "",
        };
        format!("{sign}{fill}{digits}")
    }

    fn pad(&self, text: Vec<u8>, conversion: u8, out: &mut Vec<u8>) {
        let missing = self.width.saturating_sub(text.len());
        let integer_precision = self.precision.is_some() && b"diouxX".contains(&conversion);
        if self.left {
            out.extend_from_slice(&text);
            out.extend(std::iter::repeat_n(b' ', missing));
        } else if self.zero && !b"csp".contains(&conversion) && !integer_precision {
            let sign = usize::from(text.first().is_some_and(|byte| b"+- ".contains(byte)));
            out.extend_from_slice(&text[..sign]);
            out.extend(std::iter::repeat_n(b'0', missing));
            out.extend_from_slice(&text[sign..]);
        } else {
            out.extend(std::iter::repeat_n(b' ', missing));
            out.extend_from_slice(&text);
        }
    }
}

/// C's `%e`: at least two digits of exponent.
fn exponent(value: f64, precision: usize) -> String {
    let text = format!("{value:.precision$e}");
    match text.split_once('e') {
        Some((digits, power)) => {
            let (sign, power) = match power.strip_prefix('-') {
                Some(power) => ('-', power),
                None => ('+', power),
            };
            format!("{digits}e{sign}{power:0>2}")
        }
        None => text,
    }
}

/// C's `%g`: the shorter form, without trailing zeros.
fn general(value: f64, precision: usize) -> String {
    let precision = precision.max(1);
    let scientific = exponent(value, precision - 1);
    let power: i32 = scientific
        .split_once('e')
        .and_then(|(_, power)| power.trim_start_matches('+').parse().ok())
        .unwrap_or(0);
    let strip = |digits: &str| {
        if digits.contains('.') {
            digits.trim_end_matches('0').trim_end_matches('.').to_owned()
        } else {
            digits.to_owned()
        }
    };
    if power < -4 || power >= precision as i32 {
        let (digits, power) = scientific.split_once('e').unwrap_or((&scientific, "+00"));
        format!("{}e{power}", strip(digits))
    } else {
        let decimals = (precision as i32 - 1 - power).max(0) as usize;
        strip(&format!("{value:.decimals$}"))
    }
}
