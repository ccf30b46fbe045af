#include <dtrain/comm/tree.hpp>
