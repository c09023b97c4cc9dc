// headgate - the server: parse, set up in order, run, tear down in reverse
// SPDX-License-Identifier: BSD-3-Clause

int main(void)
{
    return 0;
}
