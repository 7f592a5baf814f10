//! What may stand in a header: ids as plain text, and the trace a request belongs to.

use std::fmt::Write;

/// Percent-encodes what a header, or a list in one, can't hold. An id is written the same way wherever it is shown.
pub fn plain(text: &str) -> String {
    text.bytes().fold(String::with_capacity(text.len()), |mut plain, byte| {
        if byte.is_ascii_graphic() && byte != b',' && byte != b'%' {
            plain.push(char::from(byte));
        } else {
            write!(plain, "%{byte:02X}").expect("writing to a string can't fail");
        }
        plain
    })
}

/// The trace id of a W3C `traceparent`: version, trace, span and flags in hex. Anything else is no trace.
pub fn trace_id(traceparent: &str) -> Option<&str> {
    let hex = |text: &str, len| {
        text.len() == len
            && text.bytes().all(|letter| letter.is_ascii_digit() || (b'a'..=b'f').contains(&letter))
    };
    let real = |text: &str, len| hex(text, len) && text.bytes().any(|letter| letter != b'0');
    match traceparent.split('-').collect::<Vec<_>>().as_slice() {
        ["00", trace, span, flags] if real(trace, 32) && real(span, 16) && hex(flags, 2) => Some(trace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a4_a_traceparent_is_honoured_when_it_is_one() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(trace_id(good), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        for bad in ["", "00", "00-xyz-1-01", "00-00000000000000000000000000000000-00f067aa0ba902b7-01"] {
            assert_eq!(trace_id(bad), None, "{bad}");
        }
    }

    #[test]
    fn a4_odd_ids_fit_into_a_header() {
        assert_eq!(plain("evt_1"), "evt_1");
        assert_eq!(plain("a,b 100%\r\n関"), "a%2Cb%20100%25%0D%0A%E9%96%A2");
    }
}
