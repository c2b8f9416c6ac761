impl Desk {
    #[distributed_lock(key = "export:<self.region>")]
    fn rows(&self) -> impl Stream<Item = Result<Row, Error>> + Send {
        self.database.rows()
    }
}

#[distributed_lock(key = "ticks", on_busy = skip)]
fn ticks() -> BoxStream<'static, u32> {
    Box::pin(stream::iter(0..3))
}
