//! The slot of a name, and a short hash tag for each slot.

use std::sync::LazyLock;

/// The number of slots of a cluster.
pub(in crate::engines::redis) const SLOTS: u16 = 16_384;

/// Returns the slot of a key or shard channel.
pub(in crate::engines::redis) fn slot_of(name: &str) -> u16 {
    crc16(hash_tag(name).unwrap_or(name).as_bytes()) % SLOTS
}

/// Returns the part of a name that alone decides its slot, if there is one: the text between the
/// first opening brace and the next closing one, unless it is empty.
pub(in crate::engines::redis) fn hash_tag(name: &str) -> Option<&str> {
    let (_, rest) = name.split_once('{')?;
    let (tag, _) = rest.split_once('}')?;
    (!tag.is_empty()).then_some(tag)
}

/// Returns a hash tag of this slot: the smallest number that hashes to it.
pub(in crate::engines::redis) fn tag_of(slot: u16) -> u32 {
    TAGS[usize::from(slot)]
}

static TAGS: LazyLock<Box<[u32]>> = LazyLock::new(|| {
    let mut tags = vec![None; usize::from(SLOTS)];
    let mut missing = tags.len();
    for number in 0.. {
        let tag = &mut tags[usize::from(slot_of(&number.to_string()))];
        if tag.is_none() {
            *tag = Some(number);
            missing -= 1;
            if missing == 0 {
                break;
            }
        }
    }
    tags.into_iter().flatten().collect()
});

/// CRC16 in the XMODEM variant.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, byte| {
        // The upper byte of sixteen bits, which indexes 256 rows.
        (crc << 8) ^ CRC16[usize::from((crc >> 8) ^ u16::from(*byte))]
    })
}

const CRC16: [u16; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let (mut crc, mut bit) = ((byte as u16) << 8, 0);
        while bit < 8 {
            crc = if crc & 0x8000 == 0 { crc << 1 } else { (crc << 1) ^ 0x1021 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::{SLOTS, slot_of, tag_of};

    /// Values from the Redis Cluster specification.
    #[test]
    fn a_slot_is_that_of_the_specification() {
        assert_eq!(slot_of("123456789"), 0x31c3);
        assert_eq!(slot_of("{user1000}.following"), slot_of("user1000"));
        assert_eq!(slot_of("foo{bar}{zap}"), slot_of("bar"));
        assert_eq!(slot_of("foo{{bar}}zap"), slot_of("{bar"));
        assert_ne!(slot_of("foo{}{bar}"), slot_of("bar"), "an empty tag is none");
        assert_ne!(slot_of("foo{bar"), slot_of("bar"));
    }

    #[test]
    fn every_slot_has_a_tag() {
        for slot in 0..SLOTS {
            assert_eq!(slot_of(&format!("x{{{}}}", tag_of(slot))), slot);
        }
        // Short enough for the name of a key.
        assert!((0..SLOTS).all(|slot| tag_of(slot) < 1_000_000));
    }
}
