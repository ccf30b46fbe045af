// SIGINT, SIGTERM and SIGHUP as a question that long work asks between steps.
#pragma once

namespace dtrain {

// The first `heard` signals are counted, the next of the same kind ends the process as if unhandled. SIGHUP counts as
// the first signal only, and stays ignored where the process was started so (nohup).
void watch_stop_signals(int heard = 1);
// This signal means the same. Call after watch_stop_signals().
void watch_stop_signal(int signal);
// The first signal that came, or 0; and how many did. Safe from any thread.
int stop_signal();
int stop_signals();
// For tests: forget the signal.
void reset_stop_signal();

}  // namespace dtrain
