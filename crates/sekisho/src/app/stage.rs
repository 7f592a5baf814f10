//! Tasks that are started together and stop together.

use tokio::task::JoinHandle;

use crate::env::Env;
use crate::stop::{Stop, Stopper};

/// What the process exits with when a part of it ended unasked (`EX_SOFTWARE`).
const EXIT_PART_ENDED: i32 = 70;

/// Tasks that stop together. Stages stop one after the other: first what takes work in, last what others rely on.
pub struct TaskStage {
    env: Env,
    stop: Stopper,
    tasks: Vec<JoinHandle<()>>,
}

impl TaskStage {
    pub fn new(env: &Env) -> Self {
        Self { env: env.clone(), stop: Stopper::default(), tasks: Vec::new() }
    }

    pub fn start<F: Future<Output = ()> + Send + 'static>(
        &mut self,
        name: &'static str,
        task: impl FnOnce(Stop) -> F,
    ) {
        let (stop, task) = (self.stop.listen(), self.env.spawn(task(self.stop.listen())));
        let env = self.env.clone();
        self.tasks.push(self.env.spawn(async move {
            let ended = task.await;
            if ended.is_err() || !stop.is_told() {
                // Half a server would look alive and store nothing. What it acknowledged is safe: start again.
                tracing::error!(
                    error_type = "task_ended",
                    name,
                    "background task exited unexpectedly; exiting so the supervisor restarts the server"
                );
                env.exit(EXIT_PART_ENDED);
            }
        }));
    }

    pub async fn stop(self) {
        self.stop.stop();
        for task in self.tasks {
            if let Err(error) = task.await {
                tracing::error!(error_type = "task_failed", %error, "a background task failed");
            }
        }
    }
}
