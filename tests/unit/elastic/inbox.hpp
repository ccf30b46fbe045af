// The coordinator's end of a session under test.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include <dtrain/elastic/session.hpp>

namespace dtrain::elastic {

constexpr std::chrono::seconds kPatience{60};  // for what must happen, on however busy a machine

// Keeps what a session sends. Any thread.
class Inbox final : public ControlLink {
 public:
  void send(const FromWorker& message) override {
    const std::lock_guard lock(mutex_);
    messages_.push_back(message);
    changed_.notify_all();
  }
  // Waits for the next message of that kind, passing over others.
  template <typename Kind>
  Kind next() {
    std::unique_lock lock(mutex_);
    std::optional<Kind> found;
    const bool came = changed_.wait_for(lock, kPatience, [&] {
      for (; !found && read_ < messages_.size(); ++read_) {
        if (const auto* kind = std::get_if<Kind>(&messages_[read_])) found = *kind;
      }
      return found.has_value();
    });
    if (!came) throw Error("the message did not come");
    return *found;
  }
  template <typename Kind>
  int count() {
    const std::lock_guard lock(mutex_);
    return static_cast<int>(std::ranges::count_if(
        messages_, [](const FromWorker& message) { return std::holds_alternative<Kind>(message); }));
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<FromWorker> messages_;
  std::size_t read_ = 0;
};

}  // namespace dtrain::elastic
