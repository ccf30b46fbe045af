#include <fcntl.h>
#include <fmt/format.h>

#include <asio/posix/stream_descriptor.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>

#include <cerrno>
#include <cstring>
#include <utility>

#include <dtrain/base/error.hpp>
#include <dtrain/base/open_files.hpp>

#include "connection.hpp"
#include "loop_state.hpp"

namespace dtrain::net {
namespace {

using Descriptor = asio::posix::stream_descriptor;

void watch(std::shared_ptr<Descriptor> descriptor, std::function<bool()> work) {
  Descriptor& watched = *descriptor;
  watched.async_wait(Descriptor::wait_read,
                     [descriptor = std::move(descriptor), work = std::move(work)](asio::error_code error) mutable {
                       if (!error && work()) watch(std::move(descriptor), std::move(work));
                     });
}

}  // namespace

Loop::Loop() : state_(std::make_unique<State>()) {}

Loop::~Loop() {
  state_->ending = true;
  state_->connections.clear();
}

void Loop::run() { state_->context.run(); }

void Loop::stop() { state_->context.stop(); }

void Loop::post(std::function<void()> work) { asio::post(state_->context, std::move(work)); }

void Loop::after(std::chrono::milliseconds delay, std::function<void()> work) {
  auto timer = std::make_shared<asio::steady_timer>(state_->context, delay);
  timer->async_wait([timer, work = std::move(work)](asio::error_code error) {
    if (!error) work();
  });
}

void Loop::when_readable(int descriptor, std::function<bool()> work) {
  FileDescriptor copy(::fcntl(descriptor, F_DUPFD_CLOEXEC, 0));
  if (!copy) {
    throw Error(fmt::format("cannot watch a descriptor: {}", std::strerror(errno)), hint_without_descriptors(errno));
  }
  auto watched = std::make_shared<Descriptor>(state_->context);
  asio::error_code error;
  watched->assign(copy.get(), error);
  if (error) throw Error("cannot watch a descriptor: " + error.message());
  copy.release();
  watch(std::move(watched), std::move(work));
}

}  // namespace dtrain::net
