//! The hash of the server's certificate (`tls-server-end-point` of RFC 5929), which binds a SCRAM
//! login to the TLS connection: a machine in between cannot pass the login on.

use sha2::{Digest, Sha256, Sha384, Sha512};

use crate::engines::der::{OBJECT_IDENTIFIER, SEQUENCE, element};

/// Returns the hash by the algorithm of the certificate's signature. `None` if it has no such hash,
/// as with Ed25519, or RSA-PSS, where it is a parameter: the login is then not bound.
pub(super) fn end_point(certificate: &[u8]) -> Option<Vec<u8>> {
    // ecdsa-with-SHA256, -384 and -512.
    const ECDSA: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03];
    // sha256WithRSAEncryption and others.
    const RSA: &[u8] = &[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01];
    const ECDSA_SHA1: &[u8] = &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01];
    let algorithm = signature_algorithm(certificate)?;
    let hash = match algorithm.split_last()? {
        // MD5 and SHA-1 count as SHA-256.
        (2, ECDSA) | (4 | 5 | 11, RSA) => Hash::Sha256,
        _ if algorithm == ECDSA_SHA1 => Hash::Sha256,
        (3, ECDSA) | (12, RSA) => Hash::Sha384,
        (4, ECDSA) | (13, RSA) => Hash::Sha512,
        _ => return None,
    };
    Some(match hash {
        Hash::Sha256 => Sha256::digest(certificate).to_vec(),
        Hash::Sha384 => Sha384::digest(certificate).to_vec(),
        Hash::Sha512 => Sha512::digest(certificate).to_vec(),
    })
}

enum Hash {
    Sha256,
    Sha384,
    Sha512,
}

/// Returns the object identifier of the algorithm that signed a certificate. In DER, a certificate is
/// a sequence: what is signed, the algorithm (a sequence that begins with its identifier), and the
/// signature.
fn signature_algorithm(certificate: &[u8]) -> Option<&[u8]> {
    let (certificate, _) = element(SEQUENCE, certificate)?;
    let (_signed, rest) = element(SEQUENCE, certificate)?;
    let (algorithm, _) = element(SEQUENCE, rest)?;
    Some(element(OBJECT_IDENTIFIER, algorithm)?.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A certificate with `signed` bytes under a signature, and this algorithm.
    fn certificate(signed: u16, algorithm: &[u8]) -> Vec<u8> {
        let long = |tag: u8, content: &[u8]| {
            let length = u16::try_from(content.len()).unwrap().to_be_bytes();
            [&[tag, 0x82], &length[..], content].concat()
        };
        let short = |tag: u8, content: &[u8]| {
            [&[tag, u8::try_from(content.len()).unwrap()], content].concat()
        };
        let signed = long(0x30, &vec![7; usize::from(signed)]);
        let algorithm = short(0x30, &short(0x06, algorithm));
        long(0x30, &[signed, algorithm, short(0x03, b"signature")].concat())
    }

    #[test]
    fn the_hash_is_that_of_the_signature_and_some_signatures_have_none() {
        let rsa = |last| [&[0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 0x01, 0x01][..], &[last]].concat();
        let ecdsa = |last| [&[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03][..], &[last]].concat();
        for (algorithm, bits) in [
            (rsa(5), Some(256)),
            (rsa(11), Some(256)),
            (rsa(12), Some(384)),
            (rsa(13), Some(512)),
            (rsa(10), None),
            (ecdsa(2), Some(256)),
            (ecdsa(3), Some(384)),
            (ecdsa(4), Some(512)),
            (vec![0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x01], Some(256)),
            (vec![0x2b, 0x65, 0x70], None),
        ] {
            let hash = end_point(&certificate(900, &algorithm));
            assert_eq!(hash.map(|hash| hash.len() * 8), bits, "{algorithm:x?}");
        }
    }

    #[test]
    fn a_certificate_that_is_cut_off_has_no_hash() {
        let whole = certificate(300, &[0x2a, 0x86, 0x48, 0xce, 0x3d, 0x04, 0x03, 0x02]);
        assert!(end_point(&whole).is_some());
        for length in 0..whole.len() {
            assert_eq!(end_point(&whole[..length]), None, "{length}");
        }
        assert_eq!(end_point(&[0x30, 0xff, 0, 0]), None);
    }
}
