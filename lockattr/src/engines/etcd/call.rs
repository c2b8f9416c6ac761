//! Sends one request over a channel, or a stream of them.

use futures_util::Stream;
use prost::Message;
use tonic::client::Grpc;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::Channel;
use tonic::{IntoStreamingRequest, Request, Response, Status, Streaming};
use tonic_prost::ProstCodec;

use super::failure::Failure;

pub(super) const TXN: &str = "/etcdserverpb.KV/Txn";
pub(super) const RANGE: &str = "/etcdserverpb.KV/Range";
pub(super) const GRANT: &str = "/etcdserverpb.Lease/LeaseGrant";
pub(super) const REVOKE: &str = "/etcdserverpb.Lease/LeaseRevoke";
pub(super) const KEEP_ALIVE: &str = "/etcdserverpb.Lease/LeaseKeepAlive";
pub(super) const WATCH: &str = "/etcdserverpb.Watch/Watch";
pub(super) const STATUS: &str = "/etcdserverpb.Maintenance/Status";
pub(super) const AUTHENTICATE: &str = "/etcdserverpb.Auth/Authenticate";

/// The largest reply that is read. A list of all locks is the largest there is: it has some 300 bytes
/// for each, so this is the list of half a million. tonic's own limit of 4 MiB is that of 14,000.
const MAX_REPLY: usize = 128 * 1024 * 1024;

/// Sends one request, and returns the reply.
pub(super) async fn unary<Q, A>(
    channel: &Channel,
    token: Option<&MetadataValue<Ascii>>,
    address: &str,
    path: &'static str,
    request: Q,
) -> Result<A, Failure>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut client = Grpc::new(channel.clone()).max_decoding_message_size(MAX_REPLY);
    let failure = |status| Failure::from_status(address, &status);
    let not_ready = |error: tonic::transport::Error| failure(Status::from_error(error.into()));
    client.ready().await.map_err(not_ready)?;
    let request = with_token(Request::new(request), token);
    let path = path.parse().map_err(|_| Failure::unknown(format!("`{path}` is no path")))?;
    let response = client.unary(request, path, ProstCodec::<Q, A>::default()).await;
    response.map(Response::into_inner).map_err(failure)
}

/// Opens a stream. Returns when the member has begun to reply.
pub(super) async fn stream<Q, A>(
    channel: &Channel,
    token: Option<&MetadataValue<Ascii>>,
    path: &'static str,
    requests: impl Stream<Item = Q> + Send + 'static,
) -> Result<Streaming<A>, Status>
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut client = Grpc::new(channel.clone()).max_decoding_message_size(MAX_REPLY);
    client.ready().await.map_err(|error| Status::from_error(error.into()))?;
    let mut request = with_token(requests.into_streaming_request(), token);
    // The stream must end if its member has no leader, because it then gets no new events.
    request.metadata_mut().insert("hasleader", MetadataValue::from_static("true"));
    let path = path.parse().map_err(|_| Status::internal("not a path"))?;
    let response = client.streaming(request, path, ProstCodec::<Q, A>::default()).await;
    response.map(Response::into_inner)
}

fn with_token<T>(mut request: Request<T>, token: Option<&MetadataValue<Ascii>>) -> Request<T> {
    if let Some(token) = token {
        request.metadata_mut().insert("token", token.clone());
    }
    request
}
