#include "plan/ended.hpp"

#include <gtest/gtest.h>

#include "plan/notes.hpp"

namespace dtrain::cluster {
namespace {

TEST(Ended, NodesAreTakenOutUnderTheirNames) {
  Fleet known{.name = "demo"};
  known.nodes = {{.name = "head", .role = Role::head, .instance_id = "i-1"},
                 {.name = "w0001", .instance_id = "i-2", .weight = 2},
                 {.name = "w0002", .instance_id = "i-3"}};
  Fleet now{.name = "demo"};
  now.ending = {{.name = "i-2", .instance_id = "i-2", .end_reason = "Client.VolumeLimitExceeded"},
                {.name = "w0009", .instance_id = "i-9"}};
  const std::vector<Node> ended = take_ended(known, now);
  ASSERT_EQ(ended.size(), 1u);
  EXPECT_EQ(ended.front().name, "w0001");
  EXPECT_EQ(ended.front().weight, 2);
  EXPECT_EQ(known.nodes.size(), 2u);
  EXPECT_TRUE(take_ended(known, now).empty());
  EXPECT_EQ(ended_text(ended.front()), "w0001 (i-2) has ended: Client.VolumeLimitExceeded");
}

TEST(Ended, OnlyBaseWorkersAreMissing) {
  Launched launched{.wanted = 3, .got = 3};
  count_ended({.name = "w0001", .base = true, .instance_id = "i-1"}, true, launched);
  EXPECT_EQ(launched.wanted, 3);
  EXPECT_EQ(launched.got, 2);
  count_ended({.name = "w0002", .base = true, .instance_id = "i-2", .weight = 2}, false, launched);
  EXPECT_EQ(launched.wanted, 5);
  count_ended({.name = "w0003", .instance_id = "i-3"}, false, launched);
  EXPECT_EQ(launched.wanted, 5);
  EXPECT_EQ(launched.got, 2);
}

TEST(Ended, AFailedUpNamesWhatIsReallyThere) {
  Fleet known{.name = "demo"};
  known.nodes = {{.name = "head", .role = Role::head, .instance_id = "i-1", .type = "c5.large"},
                 {.name = "w0001", .instance_id = "i-2", .type = "c5.large"}};
  Fleet now{.name = "demo"};
  const PriceList prices = built_in_prices();
  EXPECT_EQ(remains_text(known, now, prices), "head (i-1), w0001 (i-2) keep running and cost $0.17 an hour");
  now.ending = {{.name = "head", .instance_id = "i-1"}};
  EXPECT_EQ(remains_text(known, now, prices),
            "head (i-1) has ended meanwhile, w0001 (i-2) keeps running and costs $0.09 an hour");
  now.ending.push_back({.name = "w0001", .instance_id = "i-2"});
  EXPECT_EQ(remains_text(known, now, prices),
            "head (i-1), w0001 (i-2) have ended meanwhile, what was made so far remains, without machines");
}

TEST(Ended, AFullSubnetIsNamed) {
  Launched launched;
  launched.attempts = {{.pool = {.zone = "a", .subnet_id = "subnet-a"}, .code = "InsufficientInstanceCapacity"}};
  EXPECT_EQ(capacity_hint("wait", launched), "wait");
  launched.attempts.push_back(
      {.pool = {.zone = "b", .subnet_id = "subnet-b"}, .code = "InsufficientFreeAddressesInSubnet"});
  EXPECT_EQ(capacity_hint("wait", launched),
            "wait; subnet-b has no free address for a machine: free some, or make the cluster with setting 'subnet' "
            "and another one");
}

TEST(Ended, TheReasonIsToldOnce) {
  const auto text = [](const std::string& code, const std::string& message) {
    return ended_text({.name = "w0001", .instance_id = "i-2", .end_reason = code, .end_message = message});
  };
  const std::string lead = "w0001 (i-2) has ended: ";
  EXPECT_EQ(text("Client.InternalError", "Client.InternalError: Client error on launch"),
            lead + "Client.InternalError: Client error on launch");
  EXPECT_EQ(text("Server.SpotInstanceTermination", "Spot instance termination"),
            lead + "Server.SpotInstanceTermination: Spot instance termination");
  EXPECT_EQ(text("", ""), lead + "EC2 gives no reason");
}

}  // namespace
}  // namespace dtrain::cluster
