use lockattr::distributed_lock;

#[distributed_lock(key = "invoices", once_per = "22h", on_busy = return(0))]
async fn send() -> u32 {
    1200
}

fn main() {}
