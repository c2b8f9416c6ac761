use lockattr::distributed_lock;

#[distributed_lock(key = "stock")]
async fn restock_for_ever() -> ! {
    loop {}
}

fn main() {}
