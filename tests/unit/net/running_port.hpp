// A loop on its own thread with a port that is listened on, what callbacks hand to the test, and raw sockets to annoy
// it.
#pragma once

#include <poll.h>
#include <sys/socket.h>

#include <condition_variable>
#include <filesystem>
#include <future>
#include <mutex>
#include <random>
#include <thread>

#include <dtrain/base/error.hpp>
#include <dtrain/net/channel.hpp>

#include "server/sockets.hpp"

namespace dtrain::net {

using namespace std::chrono_literals;
using ChannelPtr = std::shared_ptr<Channel>;

// What callbacks hand to the test's thread.
template <typename T>
class Mailbox {
 public:
  void put(T value) {
    const std::lock_guard lock(mutex_);
    values_.push_back(std::move(value));
    wake_.notify_all();
  }
  T take() {
    std::unique_lock lock(mutex_);
    if (!wake_.wait_for(lock, 60s, [&] { return next_ < values_.size(); })) throw std::runtime_error("nothing came");
    return std::move(values_[next_++]);
  }
  bool stays_empty() {
    std::unique_lock lock(mutex_);
    return !wake_.wait_for(lock, 100ms, [&] { return next_ < values_.size(); });
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::vector<T> values_;
  std::size_t next_ = 0;
};

// Callbacks may come until the loop ends, which may be after the ear.
struct Ear {
  std::shared_ptr<Mailbox<std::string>> all_frames = std::make_shared<Mailbox<std::string>>();
  std::shared_ptr<Mailbox<std::string>> all_ends = std::make_shared<Mailbox<std::string>>();
  Mailbox<std::string>& frames = *all_frames;
  Mailbox<std::string>& ends = *all_ends;
  Channel::Events events() {
    return {[frames = all_frames](std::string frame) { frames->put(std::move(frame)); },
            [ends = all_ends](std::string reason) { ends->put(std::move(reason)); }};
  }
};

struct RunningLoop {
  Loop loop;
  std::thread thread{[this] { loop.run(); }};
  ~RunningLoop() { stop(); }
  // No callback runs any more when it returns: what has members that callbacks use calls it before they end.
  void stop() {
    loop.stop();
    if (thread.joinable()) thread.join();
  }
  // Everything that was posted before has been done.
  void settle() {
    std::promise<void> done;
    loop.post([&] { done.set_value(); });
    done.get_future().wait();
  }
};

struct Port : RunningLoop {
  ~Port() { stop(); }
  Mailbox<ChannelPtr> accepted;
  Listener listener{loop, "127.0.0.1", "token", [this](ChannelPtr channel) { accepted.put(std::move(channel)); }};

  ChannelPtr connect(const std::string& secret = "token", std::chrono::milliseconds deadline = 60s) {
    return connect_channel(loop, "127.0.0.1", listener.port(), secret, deadline);
  }
  FileDescriptor connect_as_stranger() { return connect_to("127.0.0.1", listener.port(), 60s); }
};

inline std::size_t open_descriptors() {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) ++count;
  return count;
}

inline void write_raw(const FileDescriptor& socket, std::string_view bytes) {
  pollfd entry{socket.get(), POLLOUT, 0};
  while (!bytes.empty() && ::poll(&entry, 1, 60'000) > 0) {
    const ssize_t sent = ::send(socket.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    if (sent <= 0) return;
    bytes.remove_prefix(static_cast<std::size_t>(sent));
  }
}

// What comes until the other side closes.
inline std::string read_raw(const FileDescriptor& socket) {
  std::string all;
  pollfd entry{socket.get(), POLLIN, 0};
  while (::poll(&entry, 1, 60'000) > 0) {
    char chunk[4096];
    const ssize_t got = ::recv(socket.get(), chunk, sizeof chunk, 0);
    if (got <= 0) return all;
    all.append(chunk, static_cast<std::size_t>(got));
  }
  throw std::runtime_error("the connection stays open");
}

inline std::string random_bytes(std::mt19937& random) {
  std::string bytes(random() % 200, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

}  // namespace dtrain::net
