// SIGINT, SIGTERM, SIGHUP and a scheduler's warnings as a question that long work asks between steps.
#pragma once

#include <signal.h>

#include <chrono>
#include <limits>

namespace dtrain {

// SIGUSR1, SIGUSR2 and SIGXCPU, by which a scheduler announces the end of a job (`qsub -notify`, s_rt, s_cpu,
// `sbatch --signal`). A scheduler and the kernel repeat them, so a repetition is no new request.
[[nodiscard]] bool is_warning(int signal);
// SIGINT, SIGTERM, SIGHUP and the warnings.
[[nodiscard]] sigset_t all_stop_signals();

// The first `heard` signals are counted, the next of the same kind ends the process as if unhandled. SIGHUP and the
// warnings count as the first signal only, and stay ignored where the process was started so (nohup). The same signal
// again within 0.3 s is the same request.
void watch_stop_signals(int heard = 1);
inline constexpr int kEverySignal = std::numeric_limits<int>::max();  // `heard` where none ends the process
// From now on the first signal ends the process as if unhandled: before long work that asks no more and may be lost.
void end_at_stop_signals();
// The first SIGINT or SIGTERM from now on makes its handler write `words`, a literal, to stderr.
void answer_first_signal(const char* words);
// This signal means the same. Call after watch_stop_signals().
void watch_stop_signal(int signal);
// From now on a reader of stdout or stderr that has gone is a request to stop too, by SIGPIPE; it counts as the first
// signal only. SIGPIPE of other files is ignored then, and all of it where the process was started so. Programs that
// this process starts get the default again.
void watch_for_lost_reader();
bool is_ignored(int signal);  // by this process
// The first signal that came, or 0; and how many did. Safe from any thread.
int stop_signal();
int stop_signals();
// Waits for the time, or until a signal comes; returns whether none did.
bool pause_unless_stopped(std::chrono::milliseconds time);
// For tests: forget the signal.
void reset_stop_signal();

}  // namespace dtrain
