#include "shard_server.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include <dtrain/base/error.hpp>

namespace dtrain::train {
namespace {

using namespace std::chrono_literals;

// Copies wait here rather than in the channel, which a slow peer would fill.
constexpr std::size_t kMostUnsentCopies = 16 << 20;
constexpr auto kCopyPause = 2ms;
constexpr auto kReplicaDeadline = 10s;

}  // namespace

ShardServer::ShardServer(const ParameterServers& servers, const std::string& purpose)
    : servers_(servers), purpose_(purpose) {
  listener_.emplace(
      thread_.loop(), servers.address, servers.secret, [this](ChannelPtr channel) { receive(std::move(channel)); },
      net::ListenerOptions{.purpose = purpose_});
}

ShardServer::~ShardServer() { stop(); }

void ShardServer::stop() { thread_.stop(); }

comm::PeerAddress ShardServer::address() const { return {listener_->address(), listener_->port()}; }

void ShardServer::serve(ParameterShard shard, int number, const std::optional<BookPlan>& plan) {
  number_ = number;
  shards_[number].shard = std::make_unique<ParameterShard>(std::move(shard));
  if (!plan) return;
  ranks_ = plan->ranks;
  book_.emplace(*plan);
}

void ShardServer::keep_replica(ParameterShard replica, int number) {
  replica_ = number;
  shards_[number].shard = std::make_unique<ParameterShard>(std::move(replica));
}

void ShardServer::replicate_to(const comm::PeerAddress& peer) {
  replica_channel_ = net::connect_channel(thread_.loop(), peer.address, peer.port, servers_.secret, kReplicaDeadline,
                                          {.purpose = purpose_});
}

// Frames that came before it wait in their channels.
void ShardServer::start() {
  thread_.loop().post([this] {
    started_ = true;
    for (const auto& [key, channel] : std::exchange(early_, {})) listen(channel);
    if (!replica_channel_) return;
    replica_channel_->listen({.on_frame =
                                  [this](const std::string&) {
                                    ++acknowledged_;
                                    answer_waiting();
                                  },
                              .on_close =
                                  [this](const std::string&) {
                                    replica_channel_ = nullptr;
                                    answer_waiting();
                                  }});
  });
}

void ShardServer::receive(ChannelPtr channel) {
  if (started_) return listen(channel);
  early_[channel.get()] = channel;
}

void ShardServer::listen(const ChannelPtr& channel) {
  net::Channel* const key = channel.get();
  channels_[key] = channel;
  channel->listen({.on_frame = [this, key](const std::string& frame) { hear(key, frame); },
                   .on_close = [this, key](const std::string&) { channels_.erase(key); }});
}

void ShardServer::hear(net::Channel* key, const std::string& frame) {
  try {
    obey(key, head_of(frame), floats_of(frame));
  } catch (const DataError&) {
    channels_.erase(key);
  } catch (const std::exception& error) {
    fail(error.what());
    channels_.clear();
  }
}

void ShardServer::fail(const std::string& reason) {
  const MutexLock lock(mutex_);
  if (failure_.empty()) failure_ = reason;
}

// Throws DataError for numbers that no worker sends.
void ShardServer::check(const MessageHead& head) {
  if (book_ && (head.rank < 0 || head.rank >= ranks_)) throw DataError("a message of a rank that is not there");
  if (head.kind != MessageKind::pull) return;
  const std::int64_t size = shard().layout().parameter_count;
  const bool in_shard = head.first >= 0 && head.count >= 0 && head.first <= size && head.count <= size - head.first;
  if (!in_shard || head.count > kFloatsOfFrame) throw DataError("a question for parameters of another shard");
}

void ShardServer::obey(net::Channel* key, const MessageHead& head, std::span<const float> floats) {
  check(head);
  switch (head.kind) {
    case MessageKind::push:
      return take_push(head, floats);
    case MessageKind::copy:
      return take_copy(*key, head, floats);
    case MessageKind::next:
      note_vote(head);
      return give_ticket(*key, head);
    case MessageKind::done:
      note_done(head);
      return wait(key, head);
    case MessageKind::finish:
      book().finish(head.rank);
      return wait(key, head);
    case MessageKind::pull:
    case MessageKind::begin:
      return wait(key, head);
  }
  throw DataError("a message of an unknown kind");
}

EpochBook& ShardServer::book() {
  if (!book_) throw DataError("a question that only the first server answers");
  return *book_;
}

void ShardServer::take_push(const MessageHead& head, std::span<const float> floats) {
  if (head.shard != number_) throw DataError("gradients of another shard");
  ServedShard& mine = shards_.at(number_);
  const std::optional<backend::StepMetrics> metrics =
      mine.shard->take({head.number, head.leaf, head.first, head.learning_rate}, floats);
  if (book_ && head.first + std::ssize(floats) == shard().layout().contribution_size()) book_->pushed(head.rank);
  if (metrics) {
    mine.applied[head.number] = {.number = head.number, .metrics = *metrics};
    queue_copy(head, mine.shard->last_sum());
  }
  answer_waiting();
}

// Acknowledges each batch, and each number of one that is done.
void ShardServer::take_copy(net::Channel& from, const MessageHead& head, std::span<const float> floats) {
  if (replica_ < 0 || head.shard != replica_) throw DataError("a copy of another shard");
  ServedShard& replica = shards_.at(replica_);
  if (head.count == 0) {
    replica.done.insert(head.number);
    return from.send(frame_of(head));
  }
  const auto size = static_cast<std::size_t>(replica.shard->layout().contribution_size());
  if (head.first != std::ssize(copy_) || copy_.size() + floats.size() > size) throw DataError("a copy with gaps");
  copy_.insert(copy_.end(), floats.begin(), floats.end());
  if (copy_.size() < size) return;
  replica.applied[head.number] = {.number = head.number, .metrics = replica.shard->apply(copy_, head.learning_rate)};
  copy_.clear();
  from.send(frame_of(head));
}

void ShardServer::queue_copy(const MessageHead& of, std::span<const float> floats) {
  if (!replica_channel_) return;
  MessageHead head = of;
  head.kind = MessageKind::copy;
  head.shard = number_;
  head.count = std::ssize(floats);
  ++copied_;
  if (floats.empty()) copies_.push_back(frame_of(head));
  for (head.first = 0; head.first < std::ssize(floats); head.first += kFloatsOfFrame) {
    const auto rest = floats.subspan(static_cast<std::size_t>(head.first));
    copies_.push_back(frame_of(head, rest.first(std::min<std::size_t>(rest.size(), kFloatsOfFrame))));
  }
  if (!sending_) send_copies();
}

void ShardServer::send_copies() {
  sending_ = false;
  while (replica_channel_ && !copies_.empty() && replica_channel_->unsent() < kMostUnsentCopies) {
    replica_channel_->send(std::move(copies_.front()));
    copies_.pop_front();
  }
  if (!replica_channel_ || copies_.empty()) return;
  sending_ = true;
  thread_.loop().after(kCopyPause, [this] { send_copies(); });
}

void ShardServer::note_done(const MessageHead& head) {
  book().done(head.rank, head.number);
  ServedShard& mine = shards_.at(number_);
  if (!book_->done().contains(head.number) || !mine.done.insert(head.number).second) return;
  queue_copy(head, {});
  const auto applied = mine.applied.find(head.number);
  if (applied == mine.applied.end()) throw DataError("a batch is done that was not applied");
  applied->second.done = std::chrono::steady_clock::now();
  const MutexLock lock(mutex_);
  news_.push_back(applied->second);
}

void ShardServer::note_vote(const MessageHead& head) {
  const MutexLock lock(mutex_);
  votes_[head.rank] = head.vote;
}

void ShardServer::give_ticket(net::Channel& to, const MessageHead& question) {
  MessageHead reply = question;
  const std::optional<Ticket> ticket = book().take(question.rank);
  reply.count = ticket ? ticket->slice.count : 0;
  if (ticket) {
    reply.number = ticket->number;
    reply.first = static_cast<std::int64_t>(ticket->slice.first);
  }
  reply.version = book_->done().size();
  to.send(frame_of(reply));
  if (!ticket) answer_waiting();  // the others wait for this rank no longer
}

void ShardServer::wait(net::Channel* key, const MessageHead& question) {
  const auto channel = channels_.find(key);
  if (channel == channels_.end()) return;
  waiting_.push_back({channel->second, question, copied_});
  answer_waiting();
}

bool ShardServer::is_ready(const Waiting& waiting) const {
  const bool replicated = !replica_channel_ || acknowledged_ >= waiting.copies;
  switch (waiting.question.kind) {
    case MessageKind::pull:
      return replicated && shards_.at(number_).shard->version() >= waiting.question.version;
    case MessageKind::begin:
      return book_ && book_->may_begin(waiting.question.rank);
    case MessageKind::finish:
      return book_ && book_->is_over();
    default:
      return replicated;
  }
}

void ShardServer::answer_waiting() {
  for (auto each = waiting_.begin(); each != waiting_.end();) {
    const ChannelPtr channel = each->channel.lock();
    if (channel && !is_ready(*each)) {
      ++each;
      continue;
    }
    if (channel) answer(*channel, each->question);
    each = waiting_.erase(each);
  }
}

void ShardServer::answer(net::Channel& to, const MessageHead& question) const {
  MessageHead reply = question;
  if (question.kind != MessageKind::pull) return to.send(frame_of(reply));
  const ParameterShard& shard = *shards_.at(number_).shard;
  reply.version = shard.version();
  std::vector<float> floats;
  floats.reserve(static_cast<std::size_t>(question.count));
  std::int64_t begin = 0;  // of a range, in the shard
  for (const FloatRange& range : shard.layout().parameters) {
    const std::int64_t first = std::max(question.first, begin);
    const std::int64_t last = std::min(question.first + question.count, begin + range.size);
    const auto from = shard.state().parameters.begin() + range.first - begin;
    if (first < last) floats.insert(floats.end(), from + first, from + last);
    begin += range.size;
  }
  to.send(frame_of(reply, floats));
}

std::vector<AppliedBatch> ShardServer::take_done() {
  const MutexLock lock(mutex_);
  return std::exchange(news_, {});
}

std::vector<std::uint64_t> ShardServer::votes() {
  const MutexLock lock(mutex_);
  std::vector<std::uint64_t> votes;
  if (std::ssize(votes_) < ranks_) return votes;
  for (const auto& [rank, vote] : votes_) votes.push_back(vote);
  return votes;
}

void ShardServer::end_section() {
  thread_.loop().post([this] { book_->stop(); });
}

std::string ShardServer::failure() {
  const MutexLock lock(mutex_);
  return failure_;
}

std::map<int, ServedShard> ShardServer::take_shards() { return std::move(shards_); }

}  // namespace dtrain::train
