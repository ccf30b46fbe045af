#include "explain.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <dtrain/base/event_kind.hpp>

namespace dtrain::board {
namespace {

struct Recorded {
  const char* json;
  const char* sentence;
};

// Events as the coordinator, a worker, a training and `dtrain launch` record them.
constexpr Recorded kRecorded[] = {
    {R"({"event":"hosts","added":["w2","w3"],"removed":[],"by":"command","list":2})",
     "The list of hosts changed by command: w2, w3 should join"},
    {R"({"event":"hosts","added":["w3"],"removed":["w1"],"by":"file","list":3})",
     "The list of hosts changed by file: w3 should join; w1 should leave"},
    {R"({"event":"hosts","added":[],"removed":[],"by":"file","list":2})",
     "The list of hosts changed by file: the hosts stay the same"},
    {R"({"event":"hosts","added":["w1"],"removed":[],"by":"file","list":1})",
     "The coordinator has its first list of hosts: w1 should join"},
    {R"({"event":"hosts_refused","removed":["w1","w2"],"reason":"more than half of the hosts"})",
     "The removal of w1, w2 is ignored: more than half of the hosts"},
    {R"({"event":"host_starting","host":"w1"})", "w1 gets an agent"},
    {R"({"event":"host_up","host":"w1","address":"10.0.0.1","seconds":1.5})",
     "The agent of w1 answers from 10.0.0.1 after 1.5 s"},
    {R"({"event":"host_down","host":"w1","reason":"ssh: connection refused"})",
     "w1 has no agent: ssh: connection refused"},
    {R"({"event":"preparing","host":"w1"})", "w1 is being prepared and checked"},
    {R"({"event":"prepared","host":"w1","prepare":"ran","health":null,"seconds":{"prepare":1,"check":2,"all":3}})",
     "w1 passed the admission check"},
    {R"({"event":"spare","host":"w5","max_workers":4})", "w5 is a spare: there are enough workers"},
    {R"({"event":"drain","host":"w1","reason":"asked for"})", "w1 leaves at the next step: asked for"},
    {R"({"event":"notice","host":"w1","leave":true,"reason":"spot notice: terminate at 12:00"})",
     "w1 was given notice: spot notice: terminate at 12:00"},
    {R"({"event":"notice","host":"w1","leave":false,"reason":"rebalance recommended at 12:00"})",
     "w1 may end soon; the job keeps it until then: rebalance recommended at 12:00"},
    {R"({"event":"added","host":"w1","generation":2})", "w1 is a member: it has finished a step"},
    {R"({"event":"removed","host":"w1","reason":"not in the host list"})",
     "w1 is no member any more: not in the host list"},
    {R"({"event":"worker_starting","worker":2,"host":"w1","slot":1})", "A process starts: worker 2 on w1 (slot 1)"},
    {R"({"event":"worker_up","worker":2,"host":"w1","pid":4711,"seconds":0.5})", "Worker 2 on w1 runs as process 4711"},
    {R"({"event":"worker_ready","worker":2,"host":"w1","seconds":0.5})", "Worker 2 on w1 is ready to join"},
    {R"({"event":"straggler","worker":2,"host":"w1","score":2,"compute_seconds":0.4,"median_seconds":0.2})",
     "Worker 2 on w1 holds the others up: it computes 400 ms a step, the others 200 ms"},
    {R"({"event":"failed","worker":2,"host":"w1","slot":1,"rank":null,"generation":null,"reason":"signal 9",)"
     R"("last_lines":[]})",
     "Worker 2 on w1 (slot 1) failed: signal 9"},
    {R"({"event":"failed","host":"w2","stage":"health","reason":"4 GiB of memory are free","last_lines":[]})",
     "w2 did not pass the admission check: 4 GiB of memory are free"},
    {R"({"event":"exited","worker":2,"host":"w1","reason":"it ended with exit code 1","last_lines":[]})",
     "The process of worker 2 on w1 is gone: it ended with exit code 1"},
    {R"({"event":"left","worker":2,"host":"w1","reason":"removed from the job"})",
     "Worker 2 on w1 left: removed from the job"},
    {R"({"event":"done","worker":2,"host":"w1"})", "Worker 2 on w1 is done"},
    {R"({"event":"lost","worker":2,"host":"w1","generation":3,"reason":"connection reset"})",
     "Worker 2 on w1 lost the others in generation 3: connection reset"},
    {R"({"event":"lost","message":"the weights of m-0003 are lost: no space left","worker":2})",
     "Worker 2 could not write its last checkpoint: the weights of m-0003 are lost: no space left"},
    {R"({"event":"lost","message":"the weights of m-0003 are lost: no space left"})",
     "The training could not write its last checkpoint: the weights of m-0003 are lost: no space left"},
    {R"({"event":"prepare","generation":2,"workers":1,"leaving":["w2","w3"],"reason":"w2 is drained"})",
     "Generation 2 of 1 worker is being prepared; workers on w2, w3 leave: w2 is drained"},
    {R"({"event":"commit","generation":2,"members":["w1","w2"],"reason":"w2 joined","prepare_seconds":0.1})",
     "Generation 2 is committed, with workers on w1, w2: w2 joined"},
    {R"({"event":"entered","generation":2,"sync_seconds":0.2})",
     "All members entered generation 2; the state was synchronised in 200 ms"},
    {R"({"event":"generation","generation":3,"workers":2,"reason":"w2 joined","pause_seconds":0.25,)"
     R"("seconds":{"detect":0,"sync":0.15,"first_step":0.1}})",
     "Generation 3 trains with 2 workers after a pause of 250 ms (sync 150 ms, first step 100 ms): w2 joined"},
    {R"({"event":"abandoned","generation":3,"reason":"the job stops"})", "Generation 3 is given up: the job stops"},
    {R"({"event":"freeze","generation":3,"reason":"worker 2 on w1 failed: signal 9"})",
     "Training pauses; no update of generation 3 counts from here: worker 2 on w1 failed: signal 9"},
    {R"({"event":"hold","generation":3,"reason":"1 worker of at least 2"})",
     "Training waits for workers: 1 worker of at least 2"},
    {R"({"event":"takeover","term":2,"hosts":["w1","w2"],"workers":3})",
     "Another coordinator took over: term 2, 3 workers, agents of w1, w2"},
    {R"({"event":"takeover","term":2,"hosts":[],"workers":0})", "Another coordinator took over: term 2, 0 workers"},
    {R"({"event":"cut_off","generation":3})", "The coordinator does not reach enough agents: it decides nothing"},
    {R"({"event":"reached","seconds":4})", "The coordinator reaches enough agents again, after 4.0 s"},
    {R"({"event":"claimed","generation":4})",
     "The coordinator holds the tie-breaker of generation 4: it continues with half of the agents"},
    {R"({"event":"stop","exit_code":75,"reason":"stopped by SIGINT"})", "The job begins to stop: stopped by SIGINT"},
    {R"({"event":"end_at_once","exit_code":1,"reason":"worker 2 on w1: signal 9"})",
     "The job ends at once: worker 2 on w1: signal 9"},
    {R"({"event":"finish","exit_code":0,"reason":"training is complete"})",
     "The job is complete (exit code 0): training is complete"},
    {R"({"event":"finish","exit_code":75,"reason":"stopped by SIGINT"})",
     "The job stopped and can be resumed (exit code 75): stopped by SIGINT"},
    {R"({"event":"finish","exit_code":93,"reason":"no progress"})", "The job failed (exit code 93): no progress"},
    {R"({"event":"finish","exit_code":143,"reason":"stopped by SIGTERM"})",
     "The job was ended without a checkpoint (exit code 143): stopped by SIGTERM"},
    {R"({"event":"goodput","percent":93.1,"samples_seen":51200,"sent_bytes":2048})",
     "Goodput: 93.1 % of the time went into steps that count, 51200 samples seen, 2.0 KiB sent between workers"},
    {R"({"event":"goodput","percent":0.0,"samples_seen":320})",
     "Goodput: not measured, the coordinator heard of steps at most once, 320 samples seen"},
    {R"({"event":"goodput","percent":null,"samples_seen":320})",
     "Goodput: not measured, the coordinator heard of steps at most once, 320 samples seen"},
    {R"({"event":"goodput","percent":null,"samples_seen":0})", "Goodput: not measured, no worker counted samples"},
    {R"({"event":"step","epoch":1,"step":5,"steps":90,"samples":8,"loss":0.5,"accuracy":0.25,"seconds":1})",
     "Step 6 of epoch 2: loss 0.5000, accuracy 0.2500"},
    {R"({"event":"epoch","epoch":2,"loss":0.5,"accuracy":null,"seconds":1,"worker":2})",
     "Training of epoch 3: loss 0.5000"},
    {R"({"event":"epoch","epoch":2,"loss":null,"accuracy":0.1,"seconds":1})",
     "Training of epoch 3: a loss that is not finite, accuracy 0.1000"},
    {R"({"event":"evaluation","epoch":2,"loss":null,"accuracy":0.3,"boxes":{"ap":0.3,"ap50":0.5}})",
     "Validation of epoch 3: average precision 0.3000, 0.5000 at overlap 0.50"},
    {R"({"event":"evaluation","epoch":2,"loss":null,"accuracy":0.3,"boxes":{"ap":0.3,"ap50":0.5},)"
     R"("masks":{"ap":0.2,"ap50":0.4}})",
     "Validation of epoch 3: average precision 0.3000, 0.5000 at overlap 0.50; of masks average precision 0.2000, "
     "0.4000 at overlap 0.50"},
    {R"({"event":"evaluation","epoch":2,"loss":null,"accuracy":-1,"boxes":{"ap":-1,"ap50":-1}})",
     "Validation of epoch 3: no average precision, because there was nothing to find"},
    {R"({"event":"checkpoint","file":"m/a-0001.safetensors","worker":2})", "Worker 2 saved m/a-0001.safetensors"},
    {R"({"event":"checkpoint","file":"m/a-0001.safetensors"})", "Saved m/a-0001.safetensors"},
    {R"({"event":"shards","shards":[3,5],"worker":2})", "Shards follow the speed of the workers: ranks compute 3, 5"},
    {R"({"event":"warning","message":"2 records are damaged","worker":2})",
     "Warning of worker 2: 2 records are damaged"},
    {R"({"event":"warning","message":"2 records are damaged"})", "Warning: 2 records are damaged"},
    {R"({"event":"started","generation":1,"ranks":4,"machines":1,"restart":0,"worker":2})",
     "The program starts as 4 ranks on 1 machine in generation 1"},
    {R"({"event":"started","generation":2,"ranks":4,"machines":2,"restart":1,"worker":2})",
     "The program starts again as 4 ranks on 2 machines in generation 2"},
    {R"({"event":"rank_failed","host":"w2","rank":0,"reason":"python3 ended with exit code 1","last_lines":[],)"
     R"("failures":1,"max_restarts":3,"worker":2})",
     "Rank 0 on w2 (worker 2) failed: python3 ended with exit code 1; all ranks start again (restart 1 of at most 3)"},
};

Json parsed(const char* json) { return Json::parse(json, "test"); }

// The event with another value for one of its members, or without that member.
Json changed(const Json& event, const std::string& member, const Json* value) {
  Json other = Json::object();
  for (const auto& [name, old] : event.as_object()) {
    if (name != member) other[name] = old;
    if (name == member && value) other[name] = *value;
  }
  return other;
}

void expect_no_hole(const Json& event) {
  const std::string text = explain(event);
  EXPECT_FALSE(text.empty()) << event.dump();
  for (const char* hole : {"  ", " :", " ,", " ;", ",,", ": :", "()", "-1", "null", "[]", "{}"})
    EXPECT_EQ(text.find(hole), std::string::npos) << "'" << hole << "' in: " << text << "\n" << event.dump();
  for (const char* end : {" ", ":", ",", ";", " of", " on", " by", " from", " with", " after"})
    EXPECT_FALSE(text.ends_with(end)) << text << "\n" << event.dump();
}

TEST(Explain, SaysEveryKindOfEventInASentence) {
  for (const Recorded& each : kRecorded) EXPECT_EQ(explain(parsed(each.json)), each.sentence) << each.json;
  for (const auto& [kind, name] : kEventKindNames) {
    const auto is_of_kind = [&](const Recorded& each) { return event_kind(parsed(each.json)) == kind; };
    EXPECT_TRUE(std::ranges::any_of(kRecorded, is_of_kind)) << name << ": kRecorded lacks an event of this kind";
  }
}

// Files of other versions may lack members, and have others for "none".
TEST(Explain, LeavesOutWhatAnEventDoesNotSay) {
  const Json nothing, no_text(""), no_number(-1), no_list = Json::array();
  for (const Recorded& each : kRecorded) {
    const Json event = parsed(each.json);
    for (const auto& [name, value] : event.as_object()) {
      if (name == "event") continue;
      expect_no_hole(changed(event, name, nullptr));
      expect_no_hole(changed(event, name, &nothing));
      if (value.is_string()) expect_no_hole(changed(event, name, &no_text));
      if (value.is_number() && name != "loss") expect_no_hole(changed(event, name, &no_number));
      if (value.is_array()) expect_no_hole(changed(event, name, &no_list));
    }
  }
  for (const auto& [kind, name] : kEventKindNames) expect_no_hole(make_event(kind));
}

TEST(Explain, UnknownEventsAreToldByTheirMembers) {
  EXPECT_EQ(explain(parsed(R"({"seq":1,"event":"new kind","x":1,"y":"z","host":"","rank":null})")), "x=1 y=z");
  for (const char* odd : {"{}", "[]", "7", R"({"event":5})", R"({"event":"commit"})",
                          R"({"event":"evaluation","boxes":3,"masks":[]})", R"({"event":"finish","reason":[]})"})
    EXPECT_NO_THROW(explain(parsed(odd))) << odd;
}

TEST(Explain, WeighsEventsByTheirKinds) {
  const auto weight = [](const char* json) { return weight_of(parsed(json)); };
  for (const char* trouble :
       {R"({"event":"failed","host":"w1"})", R"({"event":"rank_failed","host":"w1"})", R"({"event":"hold"})"})
    EXPECT_EQ(weight(trouble), Weight::trouble) << trouble;
  for (const char* change : {R"({"event":"commit"})", R"({"event":"started"})", R"({"event":"claimed"})"})
    EXPECT_EQ(weight(change), Weight::change) << change;
  for (const char* detail : {R"({"event":"worker_up"})", R"({"event":"new kind"})", R"({"event":5})", "{}", "[]"})
    EXPECT_EQ(weight(detail), Weight::detail) << detail;
}

}  // namespace
}  // namespace dtrain::board
