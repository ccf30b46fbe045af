#include <dtrain/base/stop.hpp>

#include <csignal>
#include <initializer_list>

namespace dtrain {
namespace {

volatile std::sig_atomic_t first_signal = 0;

void remember(int signal) { first_signal = signal; }

}  // namespace

void watch_stop_signals() {
  for (int signal : {SIGINT, SIGTERM}) {
    struct sigaction action {};
    action.sa_handler = remember;
    // One shot: the second signal meets the default action and ends the process.
    action.sa_flags = static_cast<int>(SA_RESETHAND);
    sigaction(signal, &action, nullptr);
  }
}

int stop_signal() { return first_signal; }

void reset_stop_signal() { first_signal = 0; }

}  // namespace dtrain
