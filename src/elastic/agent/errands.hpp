// Work that may take its time (connects, shared folders) on threads of its own, for the owner of a loop that must not
// wait.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>

#include <dtrain/net/channel.hpp>

namespace dtrain::elastic {

class Errands {
 public:
  explicit Errands(net::Loop& loop) : shared_(std::make_shared<Shared>(loop)) {}
  // What is under way is waited for a little, then left alone: it cannot reach the loop any more.
  ~Errands();
  Errands(const Errands&) = delete;

  // `work` runs on a thread; what it returns is called on the loop's thread, unless the errands are gone by then.
  void run(std::function<std::function<void()>()> work);
  // Connects to another agent or a coordinator; nullptr: nobody there.
  void connect(const std::string& address, std::uint16_t port, const std::string& secret,
               std::chrono::milliseconds deadline, std::function<void(std::shared_ptr<net::Channel>)> then);

 private:
  struct Shared {
    explicit Shared(net::Loop& where) : loop(&where) {}
    std::mutex mutex;  // guards all below
    std::condition_variable ended;
    net::Loop* loop;  // nullptr: gone
    int running = 0;
  };
  std::shared_ptr<Shared> shared_;
};

}  // namespace dtrain::elastic
