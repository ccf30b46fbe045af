#include <dtrain/base/stop.hpp>

#include <csignal>
#include <initializer_list>

namespace dtrain {
namespace {

volatile std::sig_atomic_t first_signal = 0, count = 0, limit = 1;

// A terminal that closes may send SIGHUP twice, by the kernel and by the shell: it is one request.
void remember(int signal) {
  if (signal == SIGHUP && first_signal != 0) return;
  if (first_signal == 0) first_signal = signal;
  count = count + 1;
  if (count >= limit && signal != SIGHUP) std::signal(signal, SIG_DFL);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  sigaction(signal, nullptr, &action);
  return action.sa_handler == SIG_IGN;
}

}  // namespace

void watch_stop_signals(int heard) {
  limit = heard;
  for (int signal : {SIGINT, SIGTERM}) watch_stop_signal(signal);
  if (!is_ignored(SIGHUP)) watch_stop_signal(SIGHUP);
}

void watch_stop_signal(int signal) {
  struct sigaction action {};
  action.sa_handler = remember;
  sigaction(signal, &action, nullptr);
}

int stop_signal() { return first_signal; }

int stop_signals() { return count; }

void reset_stop_signal() {
  first_signal = 0;
  count = 0;
}

}  // namespace dtrain
