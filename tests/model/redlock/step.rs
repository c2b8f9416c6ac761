//! The steps, and their text in the path to a mistake.

use std::fmt;

use super::world::{NODE_NAMES, NODES};

/// What happened, and to which attempt or node.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Begins(Who),
    Takes(Who, usize),
    ReceivesReply(Who, [Option<u8>; NODES]),
    WritesBack(Who, usize),
    HasMajority(Who),
    GivesUp(Who),
    Releases(Who, usize),
    Renews(usize),
    LeaseEnds(usize),
    Advances(usize),
    Restarts(usize),
    Counts(usize),
    TimePasses,
}

/// An attempt: its owner token, and the number of earlier attempts with that token.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Who(pub(crate) u8, pub(crate) usize);

impl fmt::Display for Who {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.0, "'".repeat(self.1))
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |at: &usize| NODE_NAMES[*at];
        match self {
            Self::Begins(who) => write!(f, "{who} begins"),
            Self::Takes(who, at) => write!(f, "{who} gets {}", name(at)),
            Self::ReceivesReply(who, answers) => {
                write!(f, "{who} receives a reply")?;
                let heard = answers.iter().zip(NODE_NAMES).filter_map(|(a, n)| Some((n, (*a)?)));
                heard.into_iter().try_for_each(|(name, answer)| write!(f, " {name} {answer}"))
            }
            Self::WritesBack(who, at) => write!(f, "{} accepts what {who} writes back", name(at)),
            Self::HasMajority(who) => write!(f, "{who} has accepts of a majority"),
            Self::GivesUp(who) => write!(f, "{who} gives up"),
            Self::Releases(who, at) => write!(f, "the release of {who} reaches {}", name(at)),
            Self::Renews(at) => write!(f, "{} is renewed", name(at)),
            Self::LeaseEnds(at) => write!(f, "the lease at {} ends", name(at)),
            Self::Advances(at) => write!(f, "another lock is acquired at {}", name(at)),
            Self::Restarts(at) => write!(f, "{} restarts", name(at)),
            Self::Counts(at) => write!(f, "{} is counted again", name(at)),
            Self::TimePasses => write!(f, "time passes"),
        }
    }
}
