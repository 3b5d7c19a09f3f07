//! Operations at the same time: which of them, in which order, may have happened (Witcher §5.2).

/// All orders of all subsets of so many parts, the empty one first: what a crash may leave of a window.
pub fn partial_orders(parts: usize) -> Vec<Vec<usize>> {
    let mut orders = vec![Vec::new()];
    let mut done = 0;
    while done < orders.len() {
        for part in 0..parts {
            if !orders[done].contains(&part) {
                let longer = orders[done].iter().copied().chain([part]).collect();
                orders.push(longer);
            }
        }
        done += 1;
    }
    orders
}

/// All orders of all parts: what a window that was answered has done.
pub fn whole_orders(parts: usize) -> Vec<Vec<usize>> {
    partial_orders(parts).into_iter().filter(|order| order.len() == parts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_of_parts() {
        let two: [&[usize]; 5] = [&[], &[0], &[1], &[0, 1], &[1, 0]];
        assert_eq!(partial_orders(2), two);
        assert_eq!(whole_orders(2), two[3..]);
        assert_eq!([1, 2, 3, 4].map(|parts| partial_orders(parts).len()), [2, 5, 16, 65]);
        assert_eq!([1, 2, 3, 4].map(|parts| whole_orders(parts).len()), [1, 2, 6, 24]);
    }
}
