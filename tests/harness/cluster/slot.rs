//! Computes the slot of a key, one of 16384.

pub(super) const SLOTS: u16 = 16_384;

pub(super) fn slot_of(key: &str) -> u16 {
    crc16(tag_of(key).as_bytes()) % SLOTS
}

/// Returns the hash tag: the text between the first `{` and the next `}`, unless it is empty.
fn tag_of(key: &str) -> &str {
    let tag = key.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
    tag.map(|(tag, _)| tag).filter(|tag| !tag.is_empty()).unwrap_or(key)
}

/// Computes CRC-16/XMODEM.
fn crc16(bytes: &[u8]) -> u16 {
    let mut crc = 0_u16;
    for byte in bytes {
        crc ^= u16::from(*byte) << 8;
        for _ in 0..8 {
            let carry = crc & 0x8000 != 0;
            crc <<= 1;
            if carry {
                crc ^= 0x1021;
            }
        }
    }
    crc
}
