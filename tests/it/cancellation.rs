//! Every public future dropped at each of its points, in every weather of the store.

mod acquire;
mod aftermath;
mod annotated;
mod begins;
mod body;
mod count;
mod hold;
mod line;
mod shutdown;
mod stepped;
mod sweep;
mod weather;
mod world;
