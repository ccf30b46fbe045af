#include <dtrain/base/stop.hpp>

#include <csignal>
#include <initializer_list>

namespace dtrain {
namespace {

volatile std::sig_atomic_t first_signal = 0, count = 0, limit = 1;

void remember(int signal) {
  if (first_signal == 0) first_signal = signal;
  count = count + 1;
  if (count >= limit) std::signal(signal, SIG_DFL);
}

}  // namespace

void watch_stop_signals(int heard) {
  limit = heard;
  for (int signal : {SIGINT, SIGTERM}) watch_stop_signal(signal);
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
