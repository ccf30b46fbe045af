#include <gtest/gtest.h>

#include <dtrain/base/error.hpp>
#include <dtrain/elastic/protocol.hpp>

namespace dtrain::elastic {
namespace {

const TrainingPosition kStanding{.has_state = true, .epoch = 3, .step = 17, .samples_seen = 12345678901};

std::vector<ToWorker> one_of_each_to_worker() {
  const Member first{.worker = 7, .host = "w1", .slot = 2, .data = {"10.0.0.1", 65535}};
  const Member second{.worker = 9, .host = "gpu@[::1]:22", .slot = 0, .data = {"::1", 1}};
  return {Prepare{5, {first, second}}, Commit{5, Boundary::epoch}, Freeze{4}, Leave{"removed"},
          Stop{false, "asked"},        UpdateCredentials{"{}"}};
}

std::vector<FromWorker> one_of_each_from_worker() {
  return {Hello{4711, {"127.0.0.1", 4000}, "abc"},
          Ready{kStanding, "a hash"},
          Meshed{5, "no thread", true},
          Frozen{5, kStanding},
          Lost{5, kStanding, "rank 2 is gone"},
          Entered{6, kStanding},
          Progress{6, Phase::holding, kStanding, 0.25, 1.5, 1.125, 0.375, {1u << 31, 7}},
          Report{Json::object({{"event", "step"}, {"loss", 0.5}})},
          AskLeave{"SIGTERM"},
          Left{Left::How::removed, "\"quoted\"\n", kStanding, 0, {"no text: \xff"}, "a hint"}};
}

TEST(Protocol, EveryMessageToAWorkerComesBackFromItsText) {
  for (const ToWorker& message : one_of_each_to_worker()) {
    const Json json = to_json(message);
    const ToWorker back = to_worker_from_json(Json::parse(json.dump(), "test"));
    EXPECT_EQ(back.index(), message.index());
    EXPECT_EQ(to_json(back), json) << json.dump();
  }
  EXPECT_EQ(one_of_each_to_worker().size(), std::variant_size_v<ToWorker>);
}

TEST(Protocol, EveryMessageFromAWorkerComesBackFromItsText) {
  for (const FromWorker& message : one_of_each_from_worker()) {
    const Json json = to_json(message);
    const FromWorker back = from_worker_from_json(Json::parse(json.dump(), "test"));
    EXPECT_EQ(back.index(), message.index());
    EXPECT_EQ(to_json(back), json) << json.dump();
  }
  EXPECT_EQ(one_of_each_from_worker().size(), std::variant_size_v<FromWorker>);
}

TEST(Protocol, WritesMessagesAsTheyAreDocumented) {
  const auto text = [](const auto& message) { return to_json(message).dump(); };
  EXPECT_EQ(text(ToWorker(Commit{5, Boundary::epoch})), R"({"type":"commit","generation":5,"boundary":"epoch"})");
  EXPECT_EQ(text(ToWorker(Prepare{2, {{7, "w1", 1, {"10.0.0.1", 99}}}})),
            R"({"type":"prepare","generation":2,"members":)"
            R"([{"worker":7,"host":"w1","slot":1,"data":{"address":"10.0.0.1","port":99}}]})");
  EXPECT_EQ(text(FromWorker(Frozen{4, {true, 1, 2, 3}})),
            R"({"type":"frozen","generation":4,"standing":{"has_state":true,"epoch":1,"step":2,"samples_seen":3}})");
}

void expect_refused(std::string_view text) {
  EXPECT_THROW(to_worker_from_json(Json::parse(text, "test")), DataError) << text;
  EXPECT_THROW(from_worker_from_json(Json::parse(text, "test")), DataError) << text;
}

TEST(Protocol, RefusesWhatIsNoMessage) {
  for (const char* text :
       {"null", "7", "[]", "{}", R"({"type": 7})", R"({"type": "toString"})", R"({"type": "commit"})",
        R"({"type": "commit", "generation": -1, "boundary": "now"})",
        R"({"type": "commit", "generation": 1.5, "boundary": "now"})",
        R"({"type": "commit", "generation": 1, "boundary": "soon"})",
        R"({"type": "commit", "generation": 1, "boundary": 0})",
        R"({"type": "prepare", "generation": 1, "members": [7]})",
        R"({"type": "meshed", "generation": "1", "failure": ""})", R"({"type": "hello", "pid": 1, "fingerprint": "",
            "data": {"address": "::1", "port": 65536}})"}) {
    expect_refused(text);
  }
}

TEST(Protocol, NamesWhatIsWrong) {
  try {
    to_worker_from_json(Json::parse(R"({"type": "commit", "generation": 1, "boundary": "soon"})", "test"));
    FAIL();
  } catch (const DataError& error) {
    EXPECT_STREQ(error.what(), "a message of the job cannot be read: \"soon\" means nothing");
  }
}

TEST(Protocol, ADirectionsMessagesAreNotThoseOfTheOther) {
  EXPECT_THROW(from_worker_from_json(to_json(ToWorker(Freeze{1}))), DataError);
  EXPECT_THROW(to_worker_from_json(to_json(FromWorker(AskLeave{""}))), DataError);
}

TEST(Protocol, EveryPhaseHasAName) {
  EXPECT_STREQ(phase_name(Phase::building), "building");
  EXPECT_STREQ(phase_name(Phase::computing), "computing");
  EXPECT_STREQ(phase_name(Phase::holding), "holding");
}

}  // namespace
}  // namespace dtrain::elastic
