// The server of a shard, in a thread beside a worker's training. The first one also keeps the epoch's book.
//
// Each server sends what it applied to the next rank, which keeps a replica. A worker that learns from the servers that
// they have its gradients therefore knows that the replicas have them too.
#pragma once

#include <deque>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <dtrain/base/mutex.hpp>
#include <dtrain/comm/mesh.hpp>
#include <dtrain/net/loop_thread.hpp>

#include "epoch_book.hpp"
#include "messages.hpp"
#include "parameter_shard.hpp"

namespace dtrain::train {

// A batch whose gradients a shard has applied.
struct AppliedBatch {
  std::uint64_t number = 0;
  backend::StepMetrics metrics;
  std::chrono::steady_clock::time_point done = {};  // when all servers had it
};

// A shard with what was done to it in this section; of the first shard also which batches all servers have.
struct ServedShard {
  std::unique_ptr<ParameterShard> shard;
  std::map<std::uint64_t, AppliedBatch> applied = {};  // by number
  std::set<std::uint64_t> done = {};
};

// Threads: all that others ask for happens on the loop's thread, so book and shards need no lock; after stop() they
// belong to the caller. `mutex_` guards what the training beside it looks at meanwhile. Questions that cannot be
// answered yet wait in a list. A frame that makes no sense closes its connection. What goes wrong in an update closes
// all of them, and failure() says why.
class ShardServer {
 public:
  ShardServer(const ParameterServers& servers, const std::string& purpose);
  ~ShardServer();
  ShardServer(const ShardServer&) = delete;
  comm::PeerAddress address() const;

  // Before start(): what this server has. `book`: of the first shard's server.
  void serve(ParameterShard shard, int number, const std::optional<BookPlan>& book);
  void keep_replica(ParameterShard replica, int number);
  // Sends copies to the server at `peer` from now on. Throws RemoteError.
  void replicate_to(const comm::PeerAddress& peer);
  void start();

  // Any thread. Batches that all servers and replicas have since the last call.
  std::vector<AppliedBatch> take_done();
  // The newest votes of all ranks; empty while one is missing.
  std::vector<std::uint64_t> votes();
  // The section ends once the batches that workers have are trained.
  void end_section();
  std::string failure();

  // No other thread works with the shards from then on.
  void stop();
  // After stop().
  std::map<int, ServedShard> take_shards();

 private:
  using ChannelPtr = std::shared_ptr<net::Channel>;
  struct Waiting {
    std::weak_ptr<net::Channel> channel;
    MessageHead question;
    std::uint64_t copies = 0;  // that the replica must have first
  };

  void receive(ChannelPtr channel);
  void listen(const ChannelPtr& channel);
  void hear(net::Channel* key, const std::string& frame);
  void check(const MessageHead& head);
  void obey(net::Channel* key, const MessageHead& head, std::span<const float> floats);
  void take_push(const MessageHead& head, std::span<const float> floats);
  void take_copy(net::Channel& from, const MessageHead& head, std::span<const float> floats);
  void give_ticket(net::Channel& to, const MessageHead& question);
  void note_done(const MessageHead& head);
  void note_vote(const MessageHead& head);
  void wait(net::Channel* key, const MessageHead& question);
  bool is_ready(const Waiting& waiting) const;
  void answer(net::Channel& to, const MessageHead& question) const;
  void answer_waiting();
  void queue_copy(const MessageHead& head, std::span<const float> floats);
  void send_copies();
  ParameterShard& shard() { return *shards_.at(number_).shard; }
  EpochBook& book();
  void fail(const std::string& reason);

  const ParameterServers& servers_;
  const std::string purpose_;
  int number_ = -1;  // of the shard that is served
  int replica_ = -1;
  std::map<int, ServedShard> shards_;
  std::optional<EpochBook> book_;
  int ranks_ = 0;
  std::vector<float> copy_;  // a sum that arrives in parts
  bool started_ = false;
  std::map<net::Channel*, ChannelPtr> early_, channels_;  // that came before start()
  std::list<Waiting> waiting_;
  ChannelPtr replica_channel_;
  std::deque<std::string> copies_;  // frames that were not sent yet
  bool sending_ = false;
  std::uint64_t copied_ = 0, acknowledged_ = 0;

  Mutex mutex_;
  std::vector<AppliedBatch> news_ DTRAIN_GUARDED_BY(mutex_);
  std::map<int, std::uint64_t> votes_ DTRAIN_GUARDED_BY(mutex_);
  std::string failure_ DTRAIN_GUARDED_BY(mutex_);

  net::LoopThread thread_;
  std::optional<net::Listener> listener_;
};

}  // namespace dtrain::train
