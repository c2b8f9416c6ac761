//! Requests over a connection that records its statements, and ends each on the test's command.

use std::sync::Barrier;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use futures_util::FutureExt;
use futures_util::future::join_all;
use tokio::sync::Semaphore;
use tokio::task::yield_now;

use super::queue::MAX_BATCH;
use super::*;

/// A renewal (`r`), release (`d`) or acquisition (`a`), and its number.
type Named = (char, usize);

impl Request for Named {
    type Reply = usize;

    fn priority(&self) -> usize {
        "rda".find(self.0).expect("one of them")
    }

    fn joins(&self, others: &[Self]) -> bool {
        others.iter().all(|other| self.0 == other.0)
    }

    fn outlives_caller(&self) -> bool {
        self.0 != 'a'
    }
}

#[derive(Clone)]
struct Connection(Arc<Server>);

struct Server {
    /// What each statement executed, in the order in which they were handed to the client.
    statements: Mutex<Vec<String>>,
    /// How many statements may end.
    replies: Semaphore,
    is_usable: Mutex<bool>,
    runtime: Handle,
}

impl Execute<Named> for Connection {
    fn execute(&self, batch: Vec<Named>) -> Statement<Named> {
        let server = self.0.clone();
        Box::pin(async move {
            let text = batch.iter().map(|(kind, number)| format!("{kind}{number}"));
            server.statements.lock().push(text.collect::<Vec<_>>().join(" "));
            server.replies.acquire().await.expect("it is open").forget();
            match *server.is_usable.lock() {
                true => Ok(batch.into_iter().map(|(_, number)| number).collect()),
                false => Err(StoreError::new("the server is gone")),
            }
        })
    }

    fn is_usable(&self) -> bool {
        *self.0.is_usable.lock()
    }

    fn runtime(&self) -> &Handle {
        &self.0.runtime
    }
}

impl Connection {
    fn new() -> Self {
        let (statements, replies) = (Mutex::default(), Semaphore::new(0));
        let (is_usable, runtime) = (Mutex::new(true), Handle::current());
        Self(Arc::new(Server { statements, replies, is_usable, runtime }))
    }

    fn statements(&self) -> Vec<String> {
        self.0.statements.lock().clone()
    }

    /// Lets this many statements end, and what follows from that happen.
    async fn reply(&self, count: usize) {
        self.0.replies.add_permits(count);
        for _ in 0..50 {
            yield_now().await;
        }
    }
}

/// Sends requests in tasks, in this order.
async fn send(
    requests: &Arc<Requests<Named>>,
    connection: &Connection,
    named: &[Named],
) -> Vec<tokio::task::JoinHandle<Result<usize, StoreError>>> {
    let mut tasks = Vec::new();
    for &request in named {
        let (requests, connection) = (requests.clone(), connection.clone());
        tasks.push(tokio::spawn(async move { requests.run(&connection, request).await }));
        yield_now().await;
    }
    tasks
}

/// Red without: the limit, the priorities, or the requests behind the first that join it.
#[tokio::test]
async fn what_waits_goes_together_in_the_order_of_its_urgency() {
    let (requests, connection) = (Arc::default(), Connection::new());
    let named =
        [('a', 1), ('a', 2), ('a', 3), ('d', 4), ('a', 5), ('r', 6), ('d', 7), ('r', 8), ('a', 9)];
    let tasks = send(&requests, &connection, &named).await;
    assert_eq!(connection.statements(), ["a1", "a2"], "two are in flight");
    connection.reply(1).await;
    assert_eq!(connection.statements()[2..], ["r6 r8"]);
    connection.reply(1).await;
    assert_eq!(connection.statements()[3..], ["d4 d7"]);
    connection.reply(1).await;
    assert_eq!(connection.statements()[4..], ["a3 a5 a9"]);
    connection.reply(2).await;
    let replies = join_all(tasks).await.into_iter().map(|reply| reply.unwrap().unwrap());
    assert_eq!(replies.collect::<Vec<_>>(), [1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_eq!(send(&requests, &connection, &[('a', 10)]).await.len(), 1);
    assert_eq!(connection.statements()[5..], ["a10"], "no place was lost");
}

/// Red without: `MAX_BATCH`.
#[tokio::test]
async fn a_statement_has_a_largest_size() {
    let (requests, connection) = (Arc::<Requests<Named>>::default(), Connection::new());
    let all = requests.run_all(&connection, (0..MAX_BATCH + 3).map(|number| ('r', number)));
    let (replies, ()) = tokio::join!(all, connection.reply(2));
    assert_eq!(replies.len(), MAX_BATCH + 3);
    let sizes = connection.statements().iter().map(|it| it.split(' ').count()).collect::<Vec<_>>();
    assert_eq!(sizes, [MAX_BATCH, 3]);
}

/// Red without: `outlives_caller` in `next`.
#[tokio::test]
async fn an_acquisition_whose_caller_has_gone_is_not_sent_and_a_release_is() {
    let (requests, connection) = (Arc::default(), Connection::new());
    let named = [('a', 1), ('a', 2), ('a', 3), ('d', 4)];
    let tasks = send(&requests, &connection, &named).await;
    tasks[2].abort();
    tasks[3].abort();
    connection.reply(2).await;
    assert_eq!(connection.statements(), ["a1", "a2", "d4"]);
}

/// Otherwise callers that give up would send any number of statements to a server that is slow.
///
/// Red without: the drop of `LoneStatement`.
#[tokio::test]
async fn a_statement_whose_caller_has_gone_is_in_flight_until_its_reply() {
    let (requests, connection) = (Arc::default(), Connection::new());
    let tasks = send(&requests, &connection, &[('a', 1), ('a', 2)]).await;
    tasks[0].abort();
    yield_now().await;
    let later = send(&requests, &connection, &[('d', 3)]).await;
    tasks[1].abort();
    yield_now().await;
    assert_eq!(connection.statements(), ["a1", "a2"]);
    connection.reply(1).await;
    assert_eq!(connection.statements(), ["a1", "a2", "d3"]);
    drop(later);
}

/// Red without: `close` after a statement over a connection that has ended.
#[tokio::test]
async fn requests_of_a_connection_that_has_ended_were_not_sent() {
    let (requests, connection) = (Arc::default(), Connection::new());
    let tasks = send(&requests, &connection, &[('a', 1), ('a', 2), ('d', 3)]).await;
    *connection.0.is_usable.lock() = false;
    connection.reply(2).await;
    let errors = join_all(tasks).await.into_iter().map(|reply| reply.unwrap().unwrap_err());
    let not_sent = errors.map(|error| error.is_not_sent()).collect::<Vec<_>>();
    assert_eq!(not_sent, [false, false, true]);
    assert_eq!(connection.statements(), ["a1", "a2"]);
    let late = requests.run(&connection, ('d', 4)).now_or_never().expect("at once");
    assert!(late.unwrap_err().is_not_sent());
}

/// Red without: the first poll of a statement while the queue is locked.
#[tokio::test]
async fn the_next_statement_is_sent_before_another_request_can_follow() {
    let (requests, connection) = (Arc::<Requests<Named>>::default(), Connection::new());
    // A task completes this one, and no task runs before the assertion.
    assert!(requests.run_all(&connection, [('d', 1)].into_iter()).now_or_never().is_none());
    assert!(requests.run(&connection, ('a', 2)).now_or_never().is_none());
    assert_eq!(connection.statements(), ["d1", "a2"]);
}

/// A connection of a client that waits for a reply before it sends the next statement, with few
/// different statements.
#[derive(Clone)]
struct Serial(Connection);

impl Execute<Named> for Serial {
    const IN_FLIGHT: usize = 1;

    fn share(waiting: usize) -> usize {
        waiting.checked_ilog2().map_or(0, |power| 1 << power)
    }

    fn execute(&self, batch: Vec<Named>) -> Statement<Named> {
        self.0.execute(batch)
    }

    fn is_usable(&self) -> bool {
        self.0.is_usable()
    }

    fn runtime(&self) -> &Handle {
        self.0.runtime()
    }
}

/// Red without: `E::IN_FLIGHT`, `E::share`, or the order of the requests that are left for the next
/// statement.
#[tokio::test]
async fn the_connection_says_how_many_are_in_flight_and_how_many_share_a_statement() {
    let (requests, connection) = (Arc::<Requests<Named>>::default(), Serial(Connection::new()));
    let all = requests.run_all(&connection, (0..7).map(|number| ('r', number)));
    let statements = async {
        connection.0.reply(0).await;
        assert_eq!(connection.0.statements(), ["r0 r1 r2 r3"], "one is in flight");
        connection.0.reply(3).await;
    };
    let (replies, ()) = tokio::join!(all, statements);
    assert_eq!(replies.into_iter().map(Result::unwrap).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!(connection.0.statements(), ["r0 r1 r2 r3", "r4 r5", "r6"]);
}

/// Red without: `outlives_caller` in `next`.
#[tokio::test]
async fn a_request_that_nobody_waits_for_is_sent() {
    let (requests, connection) = (Arc::<Requests<Named>>::default(), Connection::new());
    let tasks = send(&requests, &connection, &[('a', 1), ('a', 2)]).await;
    for request in [('d', 3), ('a', 4)] {
        assert!(requests.run(&connection, request).now_or_never().is_none());
    }
    connection.reply(3).await;
    assert_eq!(connection.statements(), ["a1", "a2", "d3"]);
    join_all(tasks).await;
}

/// Two callers have sent their statements, and poll no more. A renewal that follows must not wait
/// for them.
///
/// Red without: `take_over` in `start`.
#[tokio::test]
async fn callers_that_do_not_poll_keep_no_other_waiting() {
    let (requests, connection) = (Arc::<Requests<Named>>::default(), Connection::new());
    let mut kept: Vec<_> =
        [1, 2].map(|number| Box::pin(requests.run(&connection, ('a', number)))).into();
    assert!(kept.iter_mut().all(|call| call.now_or_never().is_none()));
    let renewal = requests.run(&connection, ('r', 3));
    let replies = async {
        yield_now().await;
        connection.reply(3).await;
    };
    let (renewed, ()) = tokio::join!(renewal, replies);
    assert_eq!(renewed.unwrap(), 3);
    let kept = join_all(kept).await.into_iter().map(Result::unwrap);
    assert_eq!(kept.collect::<Vec<_>>(), [1, 2], "their replies are kept");
    assert_eq!(connection.statements(), ["a1", "a2", "r3"]);
}

/// A caller of another runtime sends a request, and that runtime shuts down.
///
/// Red without: `is_current` in `run`, or the runtime of the connection in `complete`.
#[test]
fn a_statement_outlives_the_runtime_of_its_caller() {
    let [here, there] =
        [(); 2].map(|()| tokio::runtime::Builder::new_current_thread().build().unwrap());
    let requests = Arc::<Requests<Named>>::default();
    let connection = here.block_on(async { Connection::new() });
    let sent = there.block_on(async { requests.run(&connection, ('d', 1)).now_or_never() });
    assert!(sent.is_none());
    drop(there);
    assert_eq!(connection.statements(), ["d1"]);
    let next = here.block_on(async {
        connection.reply(2).await;
        requests.run(&connection, ('d', 2)).await
    });
    assert_eq!(next.unwrap(), 2);
}

/// Red without: the error in the drop of `CombinedTask`. The server may execute the statement.
#[test]
fn a_statement_whose_runtime_shuts_down_may_have_been_executed() {
    let [here, there] =
        [(); 2].map(|()| tokio::runtime::Builder::new_current_thread().build().unwrap());
    let requests = Arc::<Requests<Named>>::default();
    let connection = here.block_on(async { Connection::new() });
    let mut call = Box::pin(requests.run(&connection, ('d', 1)));
    assert!(there.block_on(async { (&mut call).now_or_never() }).is_none());
    drop(here);
    assert!(!there.block_on(call).unwrap_err().is_not_sent());
}

/// The undo could overtake the request that it undoes, or not be sent because that seems not to have left.
///
/// Red without: the drop of `PendingReply`.
#[test]
fn a_caller_that_gives_up_waits_until_statements_have_been_handed_off() {
    let (requests, handed_off) = (Arc::<Requests<Named>>::default(), AtomicBool::new(false));
    let (_caller, reply) = oneshot::channel();
    let started = Barrier::new(2);
    thread::scope(|scope| {
        let queue = requests.0.lock();
        scope.spawn(|| {
            let pending = PendingReply { requests: &requests, reply };
            started.wait();
            drop(pending);
            assert!(handed_off.load(Ordering::SeqCst));
        });
        started.wait();
        // The other thread runs, and would have finished by now.
        (0..1_000).for_each(|_| thread::yield_now());
        handed_off.store(true, Ordering::SeqCst);
        drop(queue);
    });
}
