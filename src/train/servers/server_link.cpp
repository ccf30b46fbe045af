#include "server_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <thread>

#include <dtrain/base/error.hpp>

namespace dtrain::train {
namespace {

using namespace std::chrono_literals;

constexpr auto kConnectDeadline = 10s;
constexpr auto kTick = 100ms;
constexpr std::size_t kMostUnsent = 16 << 20;
constexpr std::int64_t kMostQuestions = 4;  // pulls of one server that are under way

}  // namespace

ServerLink::ServerLink(const std::vector<ShardLayout>& layouts, const std::vector<comm::PeerAddress>& servers,
                       const std::string& secret, const std::string& purpose, int rank, std::function<void()> between)
    : layouts_(layouts), rank_(rank), between_(std::move(between)), inboxes_(servers.size()) {
  for (std::size_t server = 0; server < servers.size(); ++server) {
    const comm::PeerAddress& at = servers[server];
    try {
      channels_.push_back(
          net::connect_channel(thread_.loop(), at.address, at.port, secret, kConnectDeadline, {.purpose = purpose}));
    } catch (const RemoteError& error) {
      throw PeerLost(describe(server, error.what()));
    }
    channels_.back()->listen({.on_frame =
                                  [this, server](std::string frame) {
                                    const MutexLock lock(mutex_);
                                    inboxes_[server].frames.push_back(std::move(frame));
                                    changed_.notify_all();
                                  },
                              .on_close =
                                  [this, server](const std::string& reason) {
                                    const MutexLock lock(mutex_);
                                    inboxes_[server].closed = reason;
                                    changed_.notify_all();
                                  }});
  }
}

ServerLink::~ServerLink() { thread_.stop(); }

std::string ServerLink::describe(std::size_t server, const std::string& what) const {
  return fmt::format("the parameter server of rank {}: {}", server, what);
}

MessageHead ServerLink::question(MessageKind kind) const {
  MessageHead head;
  head.kind = kind;
  head.rank = rank_;
  return head;
}

std::string ServerLink::wait_for(std::size_t server, MessageKind kind) {
  for (;;) {
    {
      const MutexLock lock(mutex_);
      Inbox& inbox = inboxes_[server];
      const auto has_news = [&]() DTRAIN_REQUIRES(mutex_) { return !inbox.frames.empty() || inbox.closed; };
      changed_.wait_for(mutex_, kTick, has_news);
      if (!inbox.frames.empty()) {
        std::string frame = std::move(inbox.frames.front());
        inbox.frames.pop_front();
        if (head_of(frame).kind != kind) throw PeerLost(describe(server, "it gave another answer than expected"));
        return frame;
      }
      if (inbox.closed) throw PeerLost(describe(server, *inbox.closed));
    }
    between_();
  }
}

std::optional<Ticket> ServerLink::next(std::uint64_t vote) {
  MessageHead head = question(MessageKind::next);
  head.vote = vote;
  ask(0, head);
  const MessageHead reply = head_of(wait_for(0, head.kind));
  batches_done_ = reply.version;
  if (reply.count == 0) return std::nullopt;
  return Ticket{reply.number, {static_cast<std::uint64_t>(reply.first), static_cast<int>(reply.count)}};
}

void ServerLink::begin() {
  ask(0, question(MessageKind::begin));
  wait_for(0, MessageKind::begin);
}

void ServerLink::done(std::uint64_t number) {
  MessageHead head = question(MessageKind::done);
  head.number = number;
  ask(0, head);
  wait_for(0, head.kind);
}

// Asks each server for a few parts at a time, so that answers to a slow worker do not pile up.
std::uint64_t ServerLink::pull(std::uint64_t version, std::span<float> parameters) {
  std::vector<std::int64_t> asked(channels_.size(), 0);
  MessageHead head = question(MessageKind::pull);
  head.version = version;
  const auto ask_part = [&](std::size_t server) {
    const std::int64_t size = layouts_[server].parameter_count;
    if (asked[server] > 0 && asked[server] >= size) return;
    head.first = asked[server];
    head.count = std::min(kFloatsOfFrame, size - head.first);
    asked[server] = std::max<std::int64_t>(head.first + head.count, 1);
    ask(server, head);
  };
  for (std::int64_t part = 0; part < kMostQuestions; ++part) {
    for (std::size_t server = 0; server < channels_.size(); ++server) ask_part(server);
  }
  std::uint64_t first_version = 0;
  for (std::size_t server = 0; server < channels_.size(); ++server) {
    std::int64_t got = 0, last = -1;
    for (const FloatRange& range : layouts_[server].parameters) {
      std::ptrdiff_t at = range.first;
      for (std::int64_t end = got + range.size; got < end;) {
        if (got >= last) {
          frame_ = wait_for(server, MessageKind::pull);
          part_ = floats_of(frame_);
          if (part_.empty()) throw PeerLost(describe(server, "it gave no parameters"));
          last = got + std::ssize(part_);
          if (server == 0) first_version = head_of(frame_).version;
          ask_part(server);
        }
        const std::int64_t count = std::min(end, last) - got;
        std::ranges::copy(part_.first(static_cast<std::size_t>(count)), parameters.begin() + at);
        part_ = part_.subspan(static_cast<std::size_t>(count));
        got += count;
        at += count;
      }
    }
    if (layouts_[server].parameter_count == 0) wait_for(server, MessageKind::pull);
  }
  return first_version;
}

void ServerLink::flush() {
  for (std::size_t server = 0; server < channels_.size(); ++server) ask(server, question(MessageKind::pull));
  for (std::size_t server = 0; server < channels_.size(); ++server) wait_for(server, MessageKind::pull);
}

void ServerLink::push(std::uint64_t number, int leaf, float learning_rate, std::span<const float> contribution) {
  for (std::size_t server = 0; server < channels_.size(); ++server) {
    packed_.resize(static_cast<std::size_t>(layouts_[server].contribution_size()));
    layouts_[server].pack(contribution, packed_);
    MessageHead head = question(MessageKind::push);
    head.shard = static_cast<std::int32_t>(server);
    head.leaf = leaf;
    head.number = number;
    head.learning_rate = learning_rate;
    for (head.first = 0; head.first < std::ssize(packed_); head.first += kFloatsOfFrame) {
      while (channels_[server]->unsent() > kMostUnsent) {
        std::this_thread::sleep_for(1ms);
        between_();
      }
      const auto rest = std::span<const float>(packed_).subspan(static_cast<std::size_t>(head.first));
      channels_[server]->send(frame_of(head, rest.first(std::min<std::size_t>(rest.size(), kFloatsOfFrame))));
    }
  }
}

void ServerLink::finish() {
  ask(0, question(MessageKind::finish));
  wait_for(0, MessageKind::finish);
}

}  // namespace dtrain::train
