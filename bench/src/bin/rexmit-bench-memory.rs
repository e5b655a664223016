//! The part of the benchmark that counts allocations. It is a separate process, so that counting slows down no other
//! part. Prints its rows as JSON.

fn main() {
    let counted = |work: &mut dyn FnMut()| allocation_counter::measure(work).bytes_current;
    let rows = rexmit_bench::idle::measure_memory(counted);
    println!("{}", serde_json::to_string(&rows).expect("rows are plain values"));
}
