// What a host of a job is, as the coordinator tells users and other programs: `state` of `dtrain hosts list --json`, of
// the coordinator's answer to {"ask": "list"}, and of the metrics.
#pragma once

#include <dtrain/base/enum_names.hpp>

namespace dtrain::elastic {

enum class HostPhase { absent, starting, preparing, ready, member, leaving, failed, quarantined, spare, drained };
inline constexpr EnumName<HostPhase> kHostPhaseNames[] = {
    {HostPhase::absent, "absent"},  {HostPhase::starting, "starting"},       {HostPhase::preparing, "preparing"},
    {HostPhase::ready, "ready"},    {HostPhase::member, "member"},           {HostPhase::leaving, "leaving"},
    {HostPhase::failed, "failed"},  {HostPhase::quarantined, "quarantined"}, {HostPhase::spare, "spare"},
    {HostPhase::drained, "drained"}};

}  // namespace dtrain::elastic
