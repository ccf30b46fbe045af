#include "exchange.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <exception>
#include <ranges>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::comm::tcp {
namespace {

constexpr std::uint32_t kEvents = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
constexpr std::uint64_t kWake = ~std::uint64_t{0};  // the tag of the eventfd

// A connection's: the peer, and the number of the connection to it.
constexpr std::uint64_t tag_of(std::size_t peer, std::size_t connection) { return peer << 32 | connection; }

void watch(int epoll, int socket, std::uint32_t events, std::uint64_t tag) {
  epoll_event event{};
  event.events = events;
  event.data.u64 = tag;
  if (::epoll_ctl(epoll, EPOLL_CTL_ADD, socket, &event) != 0) {
    throw Error(fmt::format("cannot watch a connection: {}", std::strerror(errno)));
  }
}

}  // namespace

Exchange::Exchange(int rank, std::vector<std::vector<Link>> links, std::chrono::milliseconds deadline,
                   std::function<void(CommPoint)> on_point)
    : rank_(rank),
      deadline_(deadline),
      on_point_(std::move(on_point)),
      links_(std::move(links)),
      epoll_(::epoll_create1(EPOLL_CLOEXEC)),
      wake_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !wake_) throw Error(fmt::format("cannot watch connections: {}", std::strerror(errno)));
  for (std::size_t peer = 0; peer < links_.size(); ++peer) {
    for (std::size_t i = 0; i < links_[peer].size(); ++i) {
      watch(epoll_.get(), links_[peer][i].socket(), kEvents, tag_of(peer, i));
    }
  }
  watch(epoll_.get(), wake_.get(), EPOLLIN, kWake);
  thread_ = std::thread([this] { serve(); });
}

Exchange::~Exchange() {
  {
    const MutexLock lock(mutex_);
    leaving_ = true;
  }
  wake();
  thread_.join();
}

void Exchange::begin(Operation& operation) {
  {
    const MutexLock lock(mutex_);
    require_alive();
    DTRAIN_CHECK(!busy_, "one operation of a communicator at a time");
    busy_ = true;
  }
  post([this, &operation] {
    operation_ = &operation;
    for (Link& link : links_ | std::views::join) link.resume();
    operation.start();
  });
}

void Exchange::end() {
  MutexLock lock(mutex_);
  if (!changed_.wait_for(mutex_, deadline_, [this]() DTRAIN_REQUIRES(mutex_) { return !busy_; })) {
    lock.unlock();
    post([this] {
      if (!operation_) return;
      std::vector<std::string> names;
      for (const int peer : operation_->blamed()) names.push_back(name_of(peer));
      for (int peer = 0; names.empty() && peer < ranks(); ++peer) {  // all came, but one took not all that is for it
        if (std::ranges::any_of(links_to(peer), &Link::has_output)) names.push_back(name_of(peer));
      }
      throw PeerLost(fmt::format("no answer within {:.1f} s from {}", static_cast<double>(deadline_.count()) / 1e3,
                                 fmt::join(names, ", ")));
    });
    lock.lock();
    while (busy_) changed_.wait(mutex_);
  }
  require_alive();
}

void Exchange::abandon() noexcept {
  abort();
  const MutexLock lock(mutex_);
  while (busy_) changed_.wait(mutex_);
}

void Exchange::post(std::function<void()> work) {
  {
    const MutexLock lock(mutex_);
    posted_.push_back(std::move(work));
    if (posted_.size() > 1) return;  // the thread was woken for the first
  }
  wake();
}

void Exchange::abort() noexcept {
  aborted_ = true;
  wake();
}

void Exchange::require_alive() const {
  if (aborted_) throw PeerLost("the communicator was aborted");
  if (!death_.empty()) throw PeerLost(death_);
}

void Exchange::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(wake_.get(), &one, sizeof one);
}

// ---- on the thread

void Exchange::serve() {
  while (true) {
    try {
      turn();
    } catch (const std::exception& error) {
      die(error.what());
    } catch (...) {
      die("it failed for a reason without a name");
    }
    const MutexLock lock(mutex_);
    if (leaving_) return;
  }
}

void Exchange::turn() {
  bool more = true;
  while (more) {
    if (aborted_) throw PeerLost("the communicator was aborted");
    more = run_posted();
    more |= move_frames();
    look_for_ends();
    finish_if_complete();
  }
  sleep();
}

bool Exchange::run_posted() {
  std::vector<std::function<void()>> works;
  {
    const MutexLock lock(mutex_);
    if (!death_.empty()) posted_.clear();
    works.swap(posted_);
  }
  for (const auto& work : works) work();
  return !works.empty();
}

bool Exchange::move_frames() {
  bool more = false;
  for (int step = 1; step < ranks(); ++step) {
    for (Link& link : links_to(peer_of_step(rank_, step, ranks()))) {
      if (link.socket() < 0) continue;
      more |= link.write(*this);
      more |= link.read(*this);
    }
  }
  return more;
}

// A rank may leave once no operation needs it: its end matters to an operation that does. When a rank leaves, one of
// its connections is seen to end before what came by the others is read.
void Exchange::look_for_ends() {
  if (!operation_) return;
  for (int peer = 0; peer < ranks(); ++peer) {
    const std::vector<Link>& links = links_to(peer);
    const auto is_silent = [](const Link& link) { return link.has_ended() || link.is_stalled(); };
    for (const Link& link : links) {
      const bool needs_it = operation_->needs(peer) && (!link.has_left() || std::ranges::all_of(links, is_silent));
      if (link.has_ended() && (needs_it || link.has_output())) throw PeerLost(link.why_ended());
      if (link.cannot_send()) throw PeerLost(link.write_error());
    }
  }
}

void Exchange::finish_if_complete() {
  if (!operation_ || queued_ > 0 || !operation_->is_complete()) return;
  operation_ = nullptr;
  const MutexLock lock(mutex_);
  busy_ = false;
  changed_.notify_all();
}

void Exchange::sleep() {
  std::array<epoll_event, 64> events;
  const int count = ::epoll_wait(epoll_.get(), events.data(), static_cast<int>(events.size()), -1);
  for (int i = 0; i < count; ++i) {
    const epoll_event& event = events[static_cast<std::size_t>(i)];
    if (event.data.u64 != kWake) {
      links_[event.data.u64 >> 32][static_cast<std::uint32_t>(event.data.u64)].note_events(event.events);
    } else {
      std::uint64_t times = 0;
      [[maybe_unused]] const ssize_t got = ::read(wake_.get(), &times, sizeof times);
    }
  }
}

void Exchange::die(const std::string& reason) noexcept {
  operation_ = nullptr;
  queued_ = 0;
  for (Link& link : links_ | std::views::join) link.give_up(reason);
  const MutexLock lock(mutex_);
  if (death_.empty()) death_ = reason;
  aborted_ = false;
  busy_ = false;
  posted_.clear();
  changed_.notify_all();
}

void Exchange::send(int peer, Outgoing frame) {
  ++queued_;
  std::vector<Link>& links = links_to(peer);
  Link& link = may_overtake(frame.header.kind) ? *std::ranges::min_element(links, {}, &Link::load) : links.front();
  link.queue(std::move(frame));
}

std::optional<std::span<std::byte>> Exchange::place(int peer, const FrameHeader& header) {
  if (!operation_) return std::nullopt;
  reach(CommPoint::before_receive);
  return operation_->place(peer, header);
}

void Exchange::arrived(int peer, const FrameHeader& header) {
  reach(CommPoint::after_receive);
  operation_->arrived(peer, header);
  if (header.kind != FrameKind::begin) return;
  for (Link& link : links_to(peer)) link.resume();  // chunks may have overtaken it
}

bool Exchange::borrow(int peer, const FrameHeader& header, const std::byte* bytes) {
  if (!operation_) return false;
  reach(CommPoint::before_receive);
  return operation_->borrow(peer, header, bytes);
}

void Exchange::gone(const FrameHeader&) {
  --queued_;
  reach(CommPoint::after_send);
}

}  // namespace dtrain::comm::tcp
