//! Formats numbers without `format!`, because every acquisition writes a lock's value.

/// A number in digits, at the end of a buffer.
pub(crate) struct Digits<const N: usize> {
    buffer: [u8; N],
    start: usize,
}

const HEX: &[u8; 16] = b"0123456789abcdef";

pub(crate) fn hex(number: u128) -> Digits<32> {
    let mut buffer = [b'0'; 32];
    for (digits, byte) in buffer.chunks_exact_mut(2).zip(number.to_be_bytes()) {
        digits[0] = HEX[usize::from(byte >> 4)];
        digits[1] = HEX[usize::from(byte & 15)];
    }
    Digits { buffer, start: 0 }
}

pub(crate) fn decimal(mut number: u64) -> Digits<20> {
    let (mut buffer, mut start) = ([b'0'; 20], 20);
    for digit in buffer.iter_mut().rev() {
        // A remainder by ten fits.
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
        start -= 1;
        if number == 0 {
            break;
        }
    }
    Digits { buffer, start }
}

impl<const N: usize> Digits<N> {
    pub(crate) fn as_str(&self) -> &str {
        // Digits are always valid.
        std::str::from_utf8(&self.buffer[self.start..]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::{decimal, hex};

    /// Red without: the halves of a byte in `hex`; `rev`, or the updates of `start`, in `decimal`.
    #[test]
    fn they_are_what_format_writes() {
        for number in [0, 1, 9, 10, 1_700_000_000_123, u64::MAX] {
            assert_eq!(decimal(number).as_str(), number.to_string());
            let number = u128::from(number) << 64 | u128::from(!number);
            assert_eq!(hex(number).as_str(), format!("{number:032x}"));
        }
    }
}
