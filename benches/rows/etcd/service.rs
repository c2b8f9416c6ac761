//! The lock service of etcd, `v3lock`, as its Rust clients call it.

use prost::Message;
use tonic::client::Grpc;
use tonic::transport::{Channel, Endpoint};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, Message)]
struct LeaseGrant {
    #[prost(int64, tag = "1")]
    ttl: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Lease {
    #[prost(int64, tag = "2")]
    id: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Lock {
    #[prost(bytes = "vec", tag = "1")]
    name: Vec<u8>,
    #[prost(int64, tag = "2")]
    lease: i64,
}

#[derive(Clone, PartialEq, Message)]
struct Locked {
    #[prost(bytes = "vec", tag = "2")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Unlock {
    #[prost(bytes = "vec", tag = "1")]
    key: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
struct Done {}

pub(super) struct Service {
    channel: Channel,
    lease: i64,
}

impl Service {
    pub(super) async fn at(addr: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{addr}")).expect("an address");
        let channel = endpoint.connect().await.expect("a member that is up");
        let asked = LeaseGrant { ttl: 600 };
        let lease: Lease = ask(&channel, "/etcdserverpb.Lease/LeaseGrant", asked).await;
        Self { channel, lease: lease.id }
    }

    pub(super) async fn lock(&self, key: &str) -> Vec<u8> {
        let asked = Lock { name: key.into(), lease: self.lease };
        ask::<_, Locked>(&self.channel, "/v3lockpb.Lock/Lock", asked).await.key
    }

    pub(super) async fn unlock(&self, key: Vec<u8>) {
        let _done: Done = ask(&self.channel, "/v3lockpb.Lock/Unlock", Unlock { key }).await;
    }
}

async fn ask<Q, A>(channel: &Channel, path: &'static str, request: Q) -> A
where
    Q: Message + 'static,
    A: Message + Default + 'static,
{
    let mut client = Grpc::new(channel.clone());
    client.ready().await.expect("connected");
    let path = path.parse().expect("a path");
    let answer = client.unary(tonic::Request::new(request), path, ProstCodec::<Q, A>::default());
    answer.await.expect("an answer").into_inner()
}
