// SIGINT and SIGTERM as a question that long work asks between steps.
#pragma once

namespace dtrain {

// Installs handlers once; the first signal is remembered, the second ends the process as if unhandled.
void watch_stop_signals();
// The first signal that came, or 0. Safe from any thread.
int stop_signal();
// For tests: forget the signal.
void reset_stop_signal();

}  // namespace dtrain
