// The parts of a Loop, for the files of this folder that put sockets on it.
//
// The context runs on one thread, so handlers need no locks against each other. Other threads only post to it. The work
// guard keeps run() going while nothing is pending. The loop's destructor sets `ending` and drops the connections; the
// context then destroys all pending handlers, and what they own must not start new work on it.
#pragma once

#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>

#include <atomic>
#include <memory>
#include <unordered_set>

#include <dtrain/net/channel.hpp>

namespace dtrain::net {

class Connection;

struct Loop::State {
  // Set by the destructor of the loop.
  std::atomic<bool> ending{false};
  // Open connections; touched on the loop's thread only. Handles from outside hold weak pointers, so that none of them
  // can outlive the context behind its socket.
  std::unordered_set<std::shared_ptr<Connection>> connections;
  asio::io_context context{1};
  asio::executor_work_guard<asio::io_context::executor_type> work = asio::make_work_guard(context);
};

}  // namespace dtrain::net
