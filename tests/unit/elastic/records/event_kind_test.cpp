#include <gtest/gtest.h>

#include <set>

#include <dtrain/base/event_kind.hpp>
#include <dtrain/base/text.hpp>

namespace dtrain::elastic {
namespace {

// Other versions of dtrain, and programs of users, read these names in the job folders that there are.
TEST(EventKind, ItsNamesArePartOfTheFormat) {
  EXPECT_EQ(join(enum_texts(kEventKindNames), " "),
            "hosts hosts_refused host_starting host_up host_down preparing prepared spare drain notice added removed "
            "worker_starting worker_up worker_ready straggler failed exited left done lost "
            "prepare commit entered generation abandoned freeze hold takeover cut_off reached claimed "
            "stop end_at_once finish goodput "
            "step epoch evaluation checkpoint shards warning started rank_failed");
}

TEST(EventKind, EachIsReadBackFromItsEvent) {
  std::set<std::string_view> names;
  for (const auto& [kind, name] : kEventKindNames) {
    EXPECT_EQ(event_kind(make_event(kind)), kind) << name;
    EXPECT_TRUE(names.insert(name).second) << name;
  }
}

TEST(EventKind, StandsBeforeTheDetailsOfTheEvent) {
  EXPECT_EQ(make_event(EventKind::drain, {{"host", "w1"}, {"reason", "asked for"}}).dump(),
            R"({"event":"drain","host":"w1","reason":"asked for"})");
}

TEST(EventKind, IsNoneWhereThisVersionDoesNotKnowTheEvent) {
  for (const char* event : {R"({"event":"new kind"})", R"({"event":"Drain"})", R"({"event":""})", R"({"event":5})",
                            R"({"event":["drain"]})", R"({"host":"drain"})", "{}", "[]", "7", "null", R"("drain")"})
    EXPECT_EQ(event_kind(Json::parse(event, "test")), std::nullopt) << event;
}

TEST(EventKind, AJobBeginsWithItsFirstListOfHosts) {
  EXPECT_TRUE(begins_job(make_event(EventKind::hosts, {{"list", 1}})));
  EXPECT_FALSE(begins_job(make_event(EventKind::hosts, {{"list", 2}})));
  EXPECT_FALSE(begins_job(make_event(EventKind::hosts, {{"list", "1"}})));
  EXPECT_FALSE(begins_job(make_event(EventKind::hosts)));
  EXPECT_FALSE(begins_job(make_event(EventKind::hosts_refused, {{"list", 1}})));
  EXPECT_FALSE(begins_job(Json(1)));
}

}  // namespace
}  // namespace dtrain::elastic
