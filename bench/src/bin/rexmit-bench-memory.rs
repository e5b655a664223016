//! The part of the measurement that counts allocations, in a process of its own, so that the
//! counting costs other programs nothing. Prints its rows as JSON.

fn main() {
    let counted = |work: &mut dyn FnMut()| allocation_counter::measure(work).bytes_current;
    let rows = rexmit_bench::idle::measure_memory(counted);
    println!("{}", serde_json::to_string(&rows).expect("rows are plain values"));
}
