// An agent's connection to the coordinator that it follows, through changes of the coordinator. Carries out what
// elect() decides.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <dtrain/elastic/agent.hpp>
#include <dtrain/net/channel.hpp>

#include "background_tasks.hpp"
#include "coordinator_process.hpp"
#include "election/elect.hpp"
#include "peers.hpp"
#include "wire.hpp"

namespace dtrain::elastic {

// Everything happens on the loop's thread. Connects and reads of the job folder run as background tasks, whose results
// come back to that thread. The loop, the options and the targets of the events must outlive this.
class Follower {
 public:
  struct Events {
    std::function<void(const Welcome&)> on_welcome;   // of each coordinator that this agent follows
    std::function<void(const AgentFrame&)> on_frame;  // may throw InvalidFrame, which ends this agent
    std::function<std::vector<WorkerReport>()> report;
    std::function<void(WorkerId)> on_end_known;  // a coordinator has its Exited
    // One of the two, once: the coordinator is lost, and no other can follow it; or this agent is not wanted any more.
    std::function<void(const std::string&reason)> on_lost, on_over;
  };
  // Keeps references to the loop and the options.
  Follower(net::Loop& loop, const AgentOptions& options, Events events);

  // Blocks until the first coordinator accepts the connection; its welcome comes later. Throws RemoteError.
  void start();
  // send_kept() keeps a report on a worker until a coordinator has it; send() drops a frame while there is no
  // connection.
  void send(Tag tag, WorkerId worker, std::string_view body);
  void send_kept(Tag tag, WorkerId worker, std::string_view body);
  // Stops following; calls `done` when all frames are sent.
  void finish(std::function<void()> done);

  const Welcome& welcome() const { return *welcome_; }
  bool welcomed() const { return welcome_.has_value(); }
  std::string local_address() const { return local_address_; }
  std::size_t unsent() const { return channel_ ? channel_->unsent() : 0; }

 private:
  using ChannelPtr = std::shared_ptr<net::Channel>;
  struct Kept {
    std::string frame;
    WorkerId ended = 0;        // worker whose Exited this is
    std::uint64_t number = 0;  // among the frames sent over this connection
  };

  void tick();
  void join(ChannelPtr channel, const comm::PeerAddress& address);
  void give_up_joining(const net::Channel* channel, const std::string& why);
  void hear(const net::Channel* channel, std::string bytes);
  void hear_first(const AgentFrame& frame);
  void follow(Welcome welcome);
  void obey(const AgentFrame& frame);
  void hear_sign_of_life(const std::string& body);
  void closed(const net::Channel* channel, const std::string& reason);
  void lost(const std::string& reason);
  void over(const std::string& reason);
  void resend(Kept& kept);
  void forget_oldest_kept();

  Vote answer(const VoteRequest& asked);
  void feed(const ElectEvent& event);
  void act(const Dial& dial);
  void act(const LookAround&);
  void act(const RequestVotes& ask);
  void act(const Answer& given) { last_vote_ = given.vote; }
  void act(const HangUp& hang_up);
  void act(const AcquireTiebreaker& tiebreaker);
  void act(const StartCoordinator& start);
  void act(const Announce& announce);
  void act(const GiveUp&);
  void act(const Note& note);

  net::Loop& loop_;
  const AgentOptions& options_;
  const Events events_;
  BackgroundTasks tasks_;
  std::optional<Peers> peers_;
  std::string local_address_;

  ChannelPtr channel_;  // to the coordinator that is followed
  ChannelPtr joining_;  // connected, not yet welcomed
  comm::PeerAddress joining_at_;
  std::optional<Welcome> welcome_;
  std::deque<Kept> kept_;
  std::uint64_t frames_ = 0;  // kept frames sent over this connection

  Election election_;
  Vote last_vote_;
  std::unique_ptr<CoordinatorProcess> coordinator_;
  bool looking_ = false, over_ = false;
  std::function<void()> on_let_out_;
  Time last_tick_{};
};

}  // namespace dtrain::elastic
