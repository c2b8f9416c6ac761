//! Every public future dropped at each of its points, in every nemesis of the store.

mod acquire;
mod aftermath;
mod annotated;
mod begins;
mod body;
mod count;
mod hold;
mod nemesis;
mod shutdown;
mod stepped;
mod sweep;
mod wait_queue;
mod world;
