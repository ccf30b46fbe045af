// A network loop that runs in a thread of its own.
#pragma once

#include <thread>

#include <dtrain/net/channel.hpp>

namespace dtrain::net {

class LoopThread {
 public:
  LoopThread() : thread_([this] { loop_.run(); }) {}
  ~LoopThread() { stop(); }
  LoopThread(const LoopThread&) = delete;
  net::Loop& loop() { return loop_; }
  // No callback runs any more when it returns. May be called more than once.
  void stop() {
    loop_.stop();
    if (thread_.joinable()) thread_.join();
  }

 private:
  net::Loop loop_;
  std::thread thread_;
};

}  // namespace dtrain::net
