use lockattr::distributed_lock;

#[distributed_lock(key = "stock")]
async fn restock() {
    println!("restocked");
}

fn main() {}
