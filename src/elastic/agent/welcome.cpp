#include "welcome.hpp"

#include <utility>

#include "wire.hpp"

namespace dtrain::elastic {

std::string welcome_frame(const NetworkAgentPoolOptions& options, std::vector<WorkerId> keep) {
  return encode(Tag::welcome, 0,
                to_json(Welcome{.environment = options.environment.value_or(std::vector<std::string>()),
                                .keep_own = options.keep_agents_environment,
                                .folder = options.folder.string(),
                                .document = options.job,
                                .forward_output = static_cast<bool>(options.on_output),
                                .term = options.term,
                                .outlive = options.outlive,
                                .silence = options.silence,
                                .patience = options.patience,
                                .grace = options.grace,
                                .keep = std::move(keep),
                                .notice_url = options.notice_url})
                    .dump());
}

}  // namespace dtrain::elastic
