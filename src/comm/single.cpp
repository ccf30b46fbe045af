#include <dtrain/comm/communicator.hpp>
