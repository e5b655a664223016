//! Concurrent tasks whose results are returned in a fixed order.

use tokio::task::JoinSet;

use super::error::RealtimeError;

/// The results of tasks in the order of their indices, or the first error. Dropping the set aborts
/// the remaining tasks.
pub(super) async fn in_order<T: 'static>(
    mut tasks: JoinSet<Result<(usize, T), RealtimeError>>,
) -> Result<Vec<T>, RealtimeError> {
    let mut results = Vec::new();
    while let Some(joined) = tasks.join_next().await {
        results.push(match joined {
            Ok(result) => result?,
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(cancelled) => unreachable!("it is never cancelled: {cancelled}"),
            },
        });
    }
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}
