mod tests {
    #[lockattr::distributed_lock(key = "stock")]
    #[test]
    fn restocks() -> Result<(), lockattr::Error> {
        Ok(())
    }
}

fn main() {}
