#include <gtest/gtest.h>

#include "agent/contacts.hpp"

namespace dtrain::elastic {
namespace {

using namespace std::chrono_literals;

const std::vector<std::string> kBoth{"w1", "w2"};

TEST(Contacts, AFreshAgentCountsAsOneThatAnsweredAReturningOneDoesNot) {
  Contacts contacts;
  contacts.add({"w1", "tree", {"10.0.0.1", 4000}}, true, Time{10s});
  contacts.add({"w2", "tree", {"10.0.0.2", 4000}}, false, Time{10s});
  EXPECT_EQ(contacts.answered_since(kBoth, Time{9s}), 1u);
  contacts.answered("w2", contacts.beat(Time{11s}));
  EXPECT_EQ(contacts.answered_since(kBoth, Time{9s}), 2u);
}

TEST(Contacts, AnAnswerCountsFromWhenItsBeatWasSent) {
  Contacts contacts;
  contacts.add({"w1", "tree", {"10.0.0.1", 4000}}, true, Time{10s});
  const std::uint64_t early = contacts.beat(Time{11s});
  contacts.beat(Time{12s});
  contacts.answered("w1", early);
  EXPECT_EQ(contacts.answered_since(kBoth, Time{11s}), 1u);
  EXPECT_EQ(contacts.answered_since(kBoth, Time{12s}), 0u);
  contacts.answered("w1", 1'000);  // never sent
  contacts.answered("nobody", early);
  EXPECT_EQ(contacts.answered_since(kBoth, Time{12s}), 0u);
}

TEST(Contacts, ItsOwnStandstillIsNotTheOthersSilence) {
  Contacts contacts;
  contacts.add({"w1", "tree", {"10.0.0.1", 4000}}, true, Time{10s});
  contacts.beat(Time{10s});
  contacts.beat(Time{20s});
  EXPECT_TRUE(contacts.silent(3s, Time{21s}).empty());
  EXPECT_EQ(contacts.silent(3s, Time{23s}), std::vector<std::string>{"w1"});
}

TEST(Contacts, AllTogetherMayBeSilentForLonger) {
  Contacts contacts;
  contacts.add({"w1", "tree", {"10.0.0.1", 4000}}, true, Time{10s});
  contacts.add({"w2", "tree", {"10.0.0.2", 4000}}, true, Time{10s});
  EXPECT_TRUE(contacts.silent(3s, Time{24s}).empty());
  EXPECT_EQ(contacts.silent(3s, Time{25s}), kBoth);
  contacts.heard("w1", Time{24s});
  EXPECT_EQ(contacts.silent(3s, Time{24s}), std::vector<std::string>{"w2"});
}

}  // namespace
}  // namespace dtrain::elastic
