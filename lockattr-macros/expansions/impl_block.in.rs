#[distributed_lock(ttl = "30s", manager = &self.locks)]
impl Cart {
    #[distributed_lock(key = "cart:<self.id>", ttl = "5s")]
    async fn add(&mut self, item: Item) -> Result<(), Error> {
        self.items.push(item);
        Ok(())
    }

    fn total(&self) -> u64 {
        self.items.iter().map(|item| item.price).sum()
    }
}
