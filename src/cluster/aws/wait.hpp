// Waits for a service to reach a state.
#pragma once

#include <chrono>
#include <functional>
#include <string>

namespace dtrain::cluster {

// Polls until done() is true, first often, then every few seconds. Throws RemoteError "WHAT: not within ..." after
// `patience`, and Stopped after SIGINT or SIGTERM.
void wait_until(std::chrono::milliseconds patience, const std::string& what, const std::function<bool()>& done);

// Throws Stopped after SIGINT or SIGTERM.
void pause_for(std::chrono::milliseconds time);

}  // namespace dtrain::cluster
