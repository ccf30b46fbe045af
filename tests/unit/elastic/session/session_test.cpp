#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <future>
#include <thread>
#include <tuple>

#include <dtrain/elastic/session.hpp>

#include "elastic/inbox.hpp"
#include "elastic/local_meshes.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;
constexpr auto kLong = kPatience;

TrainingPosition at(std::uint64_t step) {
  return {.has_state = true, .epoch = 0, .step = step, .samples_seen = 16 * step};
}
comm::PeerAddress data_of(WorkerId worker) { return {"127.0.0.1", static_cast<std::uint16_t>(worker)}; }

// A worker whose trainer is the test.
struct Rig {
  explicit Rig(LocalMeshes& meshes, WorkerId worker = 1, std::chrono::milliseconds heartbeat = 10ms)
      : session(inbox, data_of(worker),
                [&meshes](const comm::MeshPlan& plan, std::chrono::milliseconds deadline, std::stop_token cancel) {
                  return meshes.connect(plan, deadline, std::move(cancel));
                },
                {.worker = worker, .fingerprint = "f", .heartbeat = heartbeat, .mesh_deadline = kLong}) {}
  // Alone in a generation, in training.
  Entry enter_alone(Generation generation) {
    session.on_message(Prepare{generation, {{1, "w1", 0, data_of(1)}}});
    EXPECT_EQ(inbox.next<Meshed>().failure, "");
    session.on_message(Commit{generation, Boundary::now});
    return session.enter(at(0));
  }
  Verdict vote_alone(bool at_epoch_end = false) {
    const std::uint64_t vote = session.vote();
    return session.judge({&vote, 1}, at_epoch_end);
  }
  Inbox inbox;
  WorkerSession session;
};

TEST(Session, SaysHelloThenReadyOnceAndEntersWhatWasCommitted) {
  LocalMeshes meshes;
  Rig rig(meshes, 1, 1h);
  EXPECT_EQ(rig.inbox.next<Hello>().data, data_of(1));
  const Entry first = rig.enter_alone(1);
  EXPECT_EQ(first.kind, Entry::Kind::train);
  EXPECT_EQ(first.generation, 1u);
  EXPECT_EQ(first.hosts, std::vector<std::string>{"w1"});
  EXPECT_EQ(rig.inbox.next<Progress>().generation, 1u) << "the coordinator must hear of the switch at once";
  rig.session.entered(at(0));
  EXPECT_EQ(rig.inbox.next<Entered>().generation, 1u);
  EXPECT_EQ(rig.inbox.count<Ready>(), 1);
}

TEST(Session, ChangesAtTheNextStepWhenAllVotedForIt) {
  LocalMeshes meshes;
  Rig rig(meshes);
  Entry first = rig.enter_alone(1);
  EXPECT_EQ(rig.vote_alone(), Verdict::go_on);
  rig.session.on_message(Prepare{2, {{1, "w1", 0, data_of(1)}}});
  rig.inbox.next<Meshed>();
  EXPECT_EQ(rig.vote_alone(), Verdict::go_on);
  rig.session.on_message(Commit{2, Boundary::step});
  EXPECT_EQ(rig.vote_alone(), Verdict::change);
  first.communicator.reset();
  EXPECT_EQ(rig.session.enter(at(1)).generation, 2u);
}

TEST(Session, WaitsForTheEndOfTheEpochWhereTheCommitSaysSo) {
  LocalMeshes meshes;
  Rig rig(meshes);
  const Entry first = rig.enter_alone(1);
  rig.session.on_message(Prepare{2, {{1, "w1", 0, data_of(1)}}});
  rig.inbox.next<Meshed>();
  rig.session.on_message(Commit{2, Boundary::epoch});
  EXPECT_EQ(rig.vote_alone(false), Verdict::go_on);
  EXPECT_EQ(rig.vote_alone(true), Verdict::change);
}

TEST(Session, LeavesWhereItAgreedToAGenerationWithoutIt) {
  LocalMeshes meshes;
  Rig rig(meshes);
  const Entry first = rig.enter_alone(1);
  rig.session.on_message(Prepare{2, {{7, "w7", 0, data_of(7)}}});
  rig.session.on_message(Commit{2, Boundary::step});
  EXPECT_EQ(rig.vote_alone(), Verdict::change);
  EXPECT_EQ(rig.session.enter(at(1)).kind, Entry::Kind::leave);
}

TEST(Session, AFrozenWorkerCanNoLongerApply) {
  LocalMeshes meshes;
  Rig rig(meshes);
  const Entry first = rig.enter_alone(1);
  rig.session.entered(at(3));
  rig.session.on_message(Freeze{1});
  EXPECT_EQ(rig.inbox.next<Frozen>().position, at(3)) << "it answers although its trainer is busy";
  EXPECT_THROW(rig.session.begin_apply(), PeerLost);
  EXPECT_THROW(first.communicator->all_gather({}), PeerLost);
}

TEST(Session, AnswersAFreezeOnlyAfterTheApplyInProgress) {
  LocalMeshes meshes;
  Rig rig(meshes);
  const Entry first = rig.enter_alone(1);
  rig.session.begin_apply();
  rig.session.on_message(Freeze{1});
  for (int i = 0; i < 3; ++i) rig.inbox.next<Progress>();
  EXPECT_EQ(rig.inbox.count<Frozen>(), 0);
  rig.session.end_apply(at(1));
  EXPECT_EQ(rig.inbox.next<Frozen>().position, at(1));
  EXPECT_THROW(rig.session.begin_apply(), PeerLost);
}

TEST(Session, AWorkerThatLostAPeerFreezesBeforeItSaysSo) {
  LocalMeshes meshes;
  Rig rig(meshes);
  const Entry first = rig.enter_alone(1);
  rig.session.lost(PeerLost("rank 1 is gone"));
  EXPECT_EQ(rig.inbox.next<Lost>().reason, "rank 1 is gone");
  EXPECT_THROW(rig.session.begin_apply(), PeerLost);
  rig.session.on_message(Freeze{1});
  EXPECT_EQ(rig.inbox.next<Frozen>().generation, 1u);
}

TEST(Session, DoesNotReportALossThatTheCoordinatorOrdered) {
  LocalMeshes meshes;
  Rig rig(meshes);
  const Entry first = rig.enter_alone(1);
  rig.session.on_message(Freeze{1});
  rig.session.lost(PeerLost("aborted"));
  EXPECT_EQ(rig.enter_alone(2).generation, 2u);
  EXPECT_EQ(rig.inbox.count<Lost>(), 0);
}

TEST(Session, IgnoresWhatIsSaidOfOlderGenerations) {
  LocalMeshes meshes;
  Rig rig(meshes);
  const Entry first = rig.enter_alone(5);
  rig.session.on_message(Freeze{4});
  rig.session.on_message(Prepare{5, {{1, "w1", 0, data_of(1)}}});
  rig.session.on_message(Commit{5, Boundary::step});
  EXPECT_EQ(rig.vote_alone(), Verdict::go_on);
  rig.session.begin_apply();
  rig.session.end_apply(at(1));
  EXPECT_EQ(rig.inbox.count<Frozen>(), 0);
}

TEST(Session, AFreezeForgetsACommitThatNobodyAgreedTo) {
  LocalMeshes meshes;
  Rig rig(meshes);
  const Entry first = rig.enter_alone(1);
  rig.session.on_message(Prepare{2, {{1, "w1", 0, data_of(1)}}});
  rig.inbox.next<Meshed>();
  rig.session.on_message(Commit{2, Boundary::step});
  rig.session.on_message(Freeze{2});
  EXPECT_EQ(rig.vote_alone(), Verdict::go_on);
  EXPECT_EQ(rig.enter_alone(3).generation, 3u);
}

TEST(Session, AFreezeDuringTheApplyForgetsWhatTheVotesAgreedTo) {
  LocalMeshes meshes;
  Rig rig(meshes);
  const Entry first = rig.enter_alone(1);
  rig.session.on_message(Prepare{2, {{1, "w1", 0, data_of(1)}}});
  rig.inbox.next<Meshed>();
  rig.session.on_message(Commit{2, Boundary::step});
  const std::uint64_t vote = rig.session.vote();
  rig.session.begin_apply();
  rig.session.on_message(Freeze{2});
  rig.session.end_apply(at(1));
  EXPECT_EQ(rig.session.judge({&vote, 1}, false), Verdict::change) << "as on ranks that the Freeze has not reached";
  rig.session.on_message(Stop{false, "otherwise it waits for ever"});
  EXPECT_EQ(rig.enter_alone(3).generation, 3u);
}

TEST(Session, ANewerPrepareCancelsTheOneUnderWay) {
  LocalMeshes meshes;
  Rig rig(meshes);
  rig.session.on_message(Prepare{1, {{1, "w1", 0, data_of(1)}, {2, "w2", 0, data_of(2)}}});  // worker 2 does not exist
  rig.session.on_message(Prepare{2, {{1, "w1", 0, data_of(1)}}});
  const Meshed meshed = rig.inbox.next<Meshed>();
  EXPECT_EQ(meshed.generation, 2u);
  EXPECT_EQ(meshed.failure, "");
}

// Whether its peers or its own machine are at fault.
TEST(Session, SaysWhoseFaultItIsThatThereIsNoMesh) {
  for (const bool is_local : {false, true}) {
    Inbox inbox;
    WorkerSession session(inbox, data_of(1),
                          [is_local](const comm::MeshPlan&, std::chrono::milliseconds,
                                     const std::stop_token&) -> std::unique_ptr<comm::Communicator> {
                            if (is_local) throw Error("no thread");
                            throw PeerLost("rank 1 is missing");
                          },
                          {.worker = 1, .fingerprint = "f", .mesh_deadline = kLong});
    session.on_message(Prepare{1, {{1, "w1", 0, data_of(1)}, {2, "w2", 0, data_of(2)}}});
    EXPECT_EQ(inbox.next<Meshed>().is_local, is_local);
  }
}

TEST(Session, AMeshForWhichItHasNoDescriptorsIsItsOwnFault) {
  Inbox inbox;
  rlimit before{};
  ::getrlimit(RLIMIT_NOFILE, &before);
  WorkerSession session(inbox, data_of(1),
                        [&](const comm::MeshPlan&, std::chrono::milliseconds,
                            const std::stop_token&) -> std::unique_ptr<comm::Communicator> {
                          const rlimit none{0, before.rlim_max};
                          ::setrlimit(RLIMIT_NOFILE, &none);
                          throw PeerLost("rank 1 has not called");
                        },
                        {.worker = 1, .fingerprint = "f", .mesh_deadline = kLong});
  session.on_message(Prepare{1, {{1, "w1", 0, data_of(1)}, {2, "w2", 0, data_of(2)}}});
  const Meshed meshed = inbox.next<Meshed>();
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_TRUE(meshed.is_local);
  EXPECT_NE(meshed.failure.find("ulimit -n, currently 0"), std::string::npos) << meshed.failure;
}

TEST(Session, AnAgreedMeshSurvivesANewerPrepare) {
  LocalMeshes meshes;
  Rig rig(meshes);
  Entry first = rig.enter_alone(1);
  rig.session.on_message(Prepare{2, {{1, "w1", 0, data_of(1)}}});
  rig.inbox.next<Meshed>();
  rig.session.on_message(Commit{2, Boundary::step});
  const std::uint64_t vote = rig.session.vote();
  rig.session.on_message(Prepare{3, {{1, "w1", 0, data_of(1)}}});
  rig.session.on_message(Commit{3, Boundary::step});
  EXPECT_EQ(rig.session.judge({&vote, 1}, false), Verdict::change);
  first.communicator.reset();
  EXPECT_EQ(rig.session.enter(at(1)).generation, 2u);
  EXPECT_EQ(rig.vote_alone(), Verdict::change);
  EXPECT_EQ(rig.session.enter(at(1)).generation, 3u);
}

TEST(Session, LeaveStopAndALostCoordinatorEndTheWait) {
  LocalMeshes meshes;
  const auto ended_by = [&](auto act) {
    Rig rig(meshes);
    auto entry = std::async(std::launch::async, [&] { return rig.session.enter(at(0)).kind; });
    rig.inbox.next<Ready>();
    act(rig.session);
    return entry.get();
  };
  EXPECT_EQ(ended_by([](auto& session) { session.on_message(Leave{"removed"}); }), Entry::Kind::leave);
  EXPECT_EQ(ended_by([](auto& session) { session.on_message(Stop{true, ""}); }), Entry::Kind::checkpoint);
  EXPECT_EQ(ended_by([](auto& session) { session.on_message(Stop{false, ""}); }), Entry::Kind::stop);
  EXPECT_EQ(ended_by([](auto& session) { session.on_control_lost("gone"); }), Entry::Kind::stop);
}

TEST(Session, HeartbeatsTellPhaseStandingAndTheTimeOfASteps) {
  LocalMeshes meshes;
  Rig rig(meshes);
  const Entry first = rig.enter_alone(1);
  for (std::uint64_t step = 1; step <= 2; ++step) {
    rig.session.progress(Phase::computing);
    std::this_thread::sleep_for(2ms);
    rig.session.progress(Phase::reducing);
    std::this_thread::sleep_for(2ms);
    rig.session.begin_apply();
    rig.session.end_apply(at(step));
  }
  rig.session.progress(Phase::evaluating);
  Progress progress = rig.inbox.next<Progress>();
  while (progress.phase != Phase::evaluating) progress = rig.inbox.next<Progress>();
  EXPECT_EQ(progress.position, at(2));
  EXPECT_GE(progress.step_seconds, 0.004);
  EXPECT_LE(progress.compute_seconds, progress.step_seconds - 0.002);
}

// A rank alone that reduces nothing.
class Idle : public comm::Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  std::unique_ptr<comm::Reduction> begin_reduction(const comm::ReductionShape&, const comm::Note&) override {
    return nullptr;
  }
  std::unique_ptr<comm::DeviceReduction> begin_device_reduction(const comm::ReductionShape&,
                                                                const std::vector<FloatRange>&,
                                                                const comm::Note&) override {
    return nullptr;
  }
  void recycle(comm::FloatBuffer) override {}
  std::vector<std::string> all_gather(ByteView) override { return {}; }
  void send(int, ByteView) override {}
  void receive(int, std::span<std::byte>) override {}
  void abort() noexcept override {}
};

// Answers a device reduction, which no communicator of LocalMeshes does, and counts what reaches it.
class DeviceWorld final : public Idle {
 public:
  explicit DeviceWorld(int& calls) : calls_(calls) {}
  std::unique_ptr<comm::DeviceReduction> begin_device_reduction(const comm::ReductionShape&,
                                                                const std::vector<FloatRange>&,
                                                                const comm::Note&) override {
    ++calls_;
    return nullptr;
  }

 private:
  int& calls_;
};

TEST(Session, HandsDeviceReductionsToTheTransport) {
  int calls = 0;
  Inbox inbox;
  WorkerSession session(inbox, data_of(1),
                        [&](const comm::MeshPlan&, std::chrono::milliseconds, const std::stop_token&) {
                          return std::make_unique<DeviceWorld>(calls);
                        },
                        {.worker = 1, .fingerprint = "f", .heartbeat = 10ms, .mesh_deadline = kLong});
  session.on_message(Prepare{1, {{1, "w1", 0, data_of(1)}}});
  inbox.next<Meshed>();
  session.on_message(Commit{1, Boundary::now});
  const Entry entry = session.enter(at(0));
  std::ignore = entry.communicator->begin_device_reduction({}, {}, {});
  EXPECT_EQ(calls, 1);
}

// The end of a communicator of GPUs may wait for all that a GPU has to do: here, for 30 heartbeats, or in vain.
class SlowToEnd final : public Idle {
 public:
  SlowToEnd(Inbox& inbox, std::promise<std::thread::id>& ended) : inbox_(inbox), ended_(ended) {}
  ~SlowToEnd() override {
    const int before = inbox_.count<Progress>();
    const auto late = std::chrono::steady_clock::now() + kPatience;
    while (inbox_.count<Progress>() < before + 30) {
      if (std::chrono::steady_clock::now() > late) {
        ADD_FAILURE() << "no heartbeat leaves while a communicator ends";
        break;
      }
      std::this_thread::sleep_for(1ms);
    }
    ended_.set_value(std::this_thread::get_id());
  }

 private:
  Inbox& inbox_;
  std::promise<std::thread::id>& ended_;
};

TEST(Session, HeartbeatsGoOnWhileAFrozenCommunicatorEndsOnTheTrainersThread) {
  Inbox inbox;
  std::promise<std::thread::id> ended;
  std::future<std::thread::id> thread = ended.get_future();
  WorkerSession session(inbox, data_of(1),
                        [&](const comm::MeshPlan&, std::chrono::milliseconds, const std::stop_token&) {
                          return std::make_unique<SlowToEnd>(inbox, ended);
                        },
                        {.worker = 1, .fingerprint = "f", .heartbeat = 10ms, .mesh_deadline = kLong});
  session.on_message(Prepare{1, {{1, "w1", 0, data_of(1)}}});
  inbox.next<Meshed>();
  session.on_message(Commit{1, Boundary::now});
  Entry entry = session.enter(at(0));
  session.on_message(Freeze{1});
  session.on_message(Freeze{1});  // the coordinator may say it twice
  entry.communicator.reset();
  const int before = inbox.count<Progress>();
  while (inbox.count<Progress>() < before + 3) inbox.next<Progress>();
  EXPECT_EQ(thread.wait_for(0s), std::future_status::timeout) << "the trainer is not back yet";
  session.on_message(Leave{"removed"});
  EXPECT_EQ(session.enter(at(0)).kind, Entry::Kind::leave);
  EXPECT_EQ(thread.get(), std::this_thread::get_id());
}

TEST(Session, CountsTheStepsSinceItsLastHeartbeatBeforeItLeaves) {
  LocalMeshes meshes;
  Rig rig(meshes, 1, 1h);
  const Entry entry = rig.enter_alone(1);
  rig.inbox.next<Progress>();
  rig.session.begin_apply();
  rig.session.end_apply(at(1));
  rig.session.leave(Left::How::done, "");
  EXPECT_EQ(rig.inbox.next<Progress>().position, at(1));
  EXPECT_EQ(rig.inbox.next<Left>().position, at(1));
}

TEST(Session, NothingIsSentAfterTheLastMessage) {
  LocalMeshes meshes;
  Rig rig(meshes);
  rig.session.leave(Left::How::failed, "no disk");
  EXPECT_EQ(rig.inbox.next<Left>().reason, "no disk");
  const int before = rig.inbox.count<Progress>();
  std::this_thread::sleep_for(50ms);
  EXPECT_EQ(rig.inbox.count<Progress>(), before);
}

}  // namespace
}  // namespace dtrain::elastic
